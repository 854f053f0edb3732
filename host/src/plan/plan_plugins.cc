// The plugins of a plan: chosen by name for a new study, loaded again for a resumed one. A file that differs from the
// journal's is not run before the user agrees.
#include <fmt/format.h>

#include "base/guarded.h"
#include "base/sha256.h"
#include "plan/plan.h"

namespace dsat::host {

namespace fs = std::filesystem;

StrategyPlan choose_strategy(const StrategyChoice& choice, PluginKind kind, const PluginProcesses& processes,
                             bool is_kept) {
  StrategyPlan plan;
  plan.plugin = or_throw(find_strategy(choice.plugin, kind, processes));
  plan.plugin.file = fs::absolute(plan.plugin.file);
  plan.options = or_throw(parse_plugin_options(plan.plugin, choice.options));
  plan.journalled_state_version = plan.plugin.state_version;
  if (is_kept) plan.sha256 = sha256_of_file(plan.plugin.file);
  return plan;
}

void load_plugin(StrategyPlan& plan, const PluginProcesses& processes, bool accept_changed) {
  const PluginInfo then = plan.plugin;
  const std::string file = then.file.string();
  const bool searches = then.kind == PluginKind::searcher;
  const std::string other_way =
      searches ? fmt::format(", or resume with --searcher {} as a new searcher", address_of(then)) : "";
  const std::string now = sha256_of_file(then.file);
  if (now.empty()) {
    throw Error(fmt::format("plugin {}: no such file, or it cannot be read; restore it{}", file,
                            searches ? ", or go on with another --searcher" : ""));
  }
  if (now != plan.sha256 && !accept_changed) {
    throw Error(
        fmt::format("plugin {}: the file has changed since the study was started (then {} {}); restore it, accept "
                    "the new one with --accept-changed-plugins{}",
                    file, then.id, then.version, other_way));
  }
  plan.plugin = or_throw(find_strategy(address_of(then), then.kind, processes));
  if (plan.plugin.id != then.id) {
    throw Error(fmt::format("plugin {}: is now {}, but the study was started with {}; restore that one{}", file,
                            plan.plugin.id, then.id, other_way));
  }
  if (now != plan.sha256) plan.sha256 = now;
}

}  // namespace dsat::host
