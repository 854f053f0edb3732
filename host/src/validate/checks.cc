// The table of checks, and how one check is run.
#include "validate/checks.h"

#include "plugin/plugin_library.h"
#include "validate/library_checks.h"
#include "validate/strategy_checks.h"

namespace dsat::host {
namespace {

CheckContext context_of(const Json& request, const Check& check, std::function<void(const std::string&)> doing) {
  CheckContext context{request.at("file").get<std::string>(),
                       {},
                       std::move(doing),
                       request.at("host_options").get<std::vector<std::string>>()};
  if (!check.of_strategy) return context;
  const auto id = request.at("id").get<std::string>();
  const auto kind = static_cast<PluginKind>(request.at("kind").get<int>());
  for (PluginInfo& info : described(context.file)) {
    if (info.id == id && info.kind == kind) context.plugin = std::move(info);
  }
  if (context.plugin.id.empty()) throw Error("the plugin no longer offers it");
  return context;
}

}  // namespace

const std::vector<Check>& all_checks() {
  static const std::vector<Check> checks{
      {"file", false, check_file},        {"dependencies", false, check_dependencies},
      {"loading", false, check_loading},  {"descriptor", false, check_descriptor},
      {"exports", false, check_exports},  {"options", true, check_options},
      {"life cycle", true, check_life},   {"determinism", true, check_determinism},
      {"state", true, check_state},       {"damaged state", true, check_damaged_state},
      {"outcomes", true, check_outcomes}, {"limits", true, check_limits},
      {"latency", true, check_latency},
  };
  return checks;
}

Json run_check(const Json& request, const std::function<void(const std::string&)>& doing) {
  const auto name = request.at("check").get<std::string>();
  for (const Check& check : all_checks()) {
    if (name != check.name) continue;
    CheckOutcome outcome;
    try {
      outcome = check.run(context_of(request, check, doing));
    } catch (const std::exception& error) {
      outcome = {CheckStatus::failed, error.what(), ""};
    }
    return {{"status", static_cast<int>(outcome.status)}, {"reason", outcome.reason}, {"digest", outcome.digest}};
  }
  throw Error("no check " + name);
}

}  // namespace dsat::host
