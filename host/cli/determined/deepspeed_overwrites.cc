// Sets each dotted key in a configuration of its own, then renames TYPE.
#include "determined/deepspeed_overwrites.h"

#include <fmt/format.h>

#include "dsat/error.h"

namespace dsat::cli {

Json as_deepspeed_keys(const Json& overwrites) {
  Json result = Json::object();
  for (const auto& [key, value] : overwrites.items()) {
    if (key.find('.') == std::string::npos) {
      Json entry = Json::object();
      entry[key] = value;
      config::overwrite(result, entry);
      continue;
    }
    const Json* given = config::find(overwrites, key);
    if (given != nullptr && *given != value) {
      throw Error(fmt::format("{} is {}, and {} in its section: keep one", key, value.dump(), given->dump()));
    }
    config::set(result, key, value);
  }
  for (const char* section : {"optimizer", "scheduler"}) {
    const auto found = result.find(section);
    if (found == result.end() || !found->is_object() || !found->contains("TYPE")) continue;
    const Json type = (*found)["TYPE"];
    found->erase("TYPE");
    if (!found->contains("type")) (*found)["type"] = type;
  }
  return result;
}

}  // namespace dsat::cli
