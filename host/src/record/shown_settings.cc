// A variable keeps only its name, since its value may be secret: "NAME=value" becomes "NAME", and a map's value null.
#include "record/shown_settings.h"

namespace dsat::host {
namespace {

using Pointer = Json::json_pointer;

// `variables` is a list, a map, or a map of lists by kind of device.
void leave_names(Json& variables) {
  for (Json& entry : variables) {
    if (entry.is_array()) {
      leave_names(entry);
    } else if (variables.is_object()) {
      entry = nullptr;
    } else if (entry.is_string()) {
      const std::string& text = entry.get_ref<const std::string&>();
      entry = text.substr(0, text.find('='));
    }
  }
}

}  // namespace

Json shown_settings(Json settings) {
  for (const char* place : {"/variables", "/experiment/environment/environment_variables"}) {
    if (settings.contains(Pointer(place)) && settings.at(Pointer(place)).is_structured())
      leave_names(settings.at(Pointer(place)));
  }
  for (const char* place :
       {"/experiment/environment/registry_auth", "/experiment/checkpoint_storage/access_key",
        "/experiment/checkpoint_storage/secret_key", "/experiment/checkpoint_storage/connection_string"}) {
    if (settings.contains(Pointer(place))) settings.at(Pointer(place)) = nullptr;
  }
  return settings;
}

}  // namespace dsat::host
