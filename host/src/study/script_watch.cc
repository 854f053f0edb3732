// One text for each sign, with what to do about it.
#include "study/script_watch.h"

#include <fmt/format.h>

#include <utility>

namespace dsat::host {

std::vector<std::string> ScriptWatch::add(const TrialEnd& end) {
  std::vector<std::string> told;
  if (!end.checkpoint_outside.empty() && !std::exchange(is_checkpoint_told_, true)) {
    told.push_back(
        fmt::format("trial {} saved a checkpoint in {}: later trials and your real training may go on from it; remove "
                    "it before you train, and give each trial a folder of its own (--trial-cwd copy; where the path is "
                    "absolute, {{trial_dir}} in COMMAND)",
                    end.id, end.checkpoint_outside));
  }
  // One that failed may have made its engine again.
  if (end.engines > 1 && end.outcome == Outcome::completed && !std::exchange(are_engines_told_, true)) {
    told.push_back(
        fmt::format("trial {} made {} DeepSpeed engines, as the scripts of GANs do: parameters, FLOPS, times and "
                    "throughput are those of one of them only, so compare the whole script's speed yourself",
                    end.id, end.engines));
  }
  return told;
}

}  // namespace dsat::host
