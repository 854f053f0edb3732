// Options and requirements are checked again when they are received, since the sending process runs foreign code.
#include "plugin/plugin_info_json.h"

#include "plugin/descriptor_check.h"

namespace dsat::host {

Json to_json(const PluginInfo& info) {
  return {{"file", info.file.string()},
          {"kind", static_cast<int>(info.kind)},
          {"id", info.id},
          {"name", info.name},
          {"version", info.version},
          {"summary", info.summary},
          {"abi", {info.abi_major, info.abi_minor}},
          {"state_version", info.state_version},
          {"options", info.options},
          {"study", info.study}};
}

PluginInfo plugin_info_from_json(const Json& json) {
  PluginInfo info;
  try {
    info.file = json.at("file").get<std::string>();
    info.kind = json.at("kind").get<int>() == 0 ? PluginKind::searcher : PluginKind::profiler;
    info.id = json.at("id").get<std::string>();
    info.name = json.at("name").get<std::string>();
    info.version = json.at("version").get<std::string>();
    info.summary = json.at("summary").get<std::string>();
    info.abi_major = json.at("abi").at(0).get<unsigned>();
    info.abi_minor = json.at("abi").at(1).get<unsigned>();
    info.state_version = json.at("state_version").get<unsigned>();
    info.options = json.at("options");
    info.study = json.at("study");
  } catch (const Json::exception&) {
    throw Error(DSAT_DATA_LOSS, "has sent no description of a plugin");
  }
  const std::string problem = problem_of(info);
  if (!problem.empty()) throw Error(DSAT_DATA_LOSS, "has sent a wrong description: " + problem);
  return info;
}

}  // namespace dsat::host
