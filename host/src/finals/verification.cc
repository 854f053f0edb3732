// One candidate after the other, until one completes.
#include "finals/verification.h"

#include <fmt/format.h>

namespace dsat::host {

void Verification::start(const Json& brief) {
  brief_ = brief;
  ask_next();
}

void Verification::trial_ended(const Ended& ended) {
  if (ended.outcome != Outcome::completed) return ask_next();
  finish(brief_.at("reason").get<std::string>(), brief_.at("candidates").at(next_ - 1).at("trial").get<uint64_t>());
}

void Verification::ask_next() {
  const Json& candidates = brief_.at("candidates");
  if (next_ < candidates.size()) {
    const Json& one = candidates[next_++];
    const std::string note =
        fmt::format("trial {} for {} further steps", one.at("trial").get<uint64_t>(), brief_.at("steps").get<int>());
    if (ask(one.at("overrides"), note, true)) return;
  }
  finish(brief_.at("reason").get<std::string>(), std::nullopt);
}

}  // namespace dsat::host
