// One candidate after the other, until one completes.
#include "finals/verification.h"

#include <fmt/format.h>

#include "finals/finals.h"

namespace dsat::host {

void Verification::start(const Json& brief) {
  brief_ = brief;
  ask_next();
}

void Verification::trial_ended(const Ended& ended) {
  if (ended.outcome != Outcome::completed) return ask_next();
  finish(brief_.at("reason").get<std::string>(), brief_.at("candidates").at(next_ - 1).at("trial").get<uint64_t>());
}

// Where no trial is left the next one is handed back as it is: those before it have failed, and those between would.
void Verification::ask_next() {
  const Json& candidates = brief_.at("candidates");
  if (next_ >= candidates.size()) return finish(brief_.at("reason").get<std::string>(), std::nullopt);
  const Json& one = candidates[next_++];
  const auto trial = one.at("trial").get<uint64_t>();
  const std::string note = fmt::format("trial {} for {} further steps", trial, brief_.at("steps").get<int>());
  if (next_ <= kMostFinalists && ask(one.at("overrides"), note, true)) return;
  finish(brief_.at("reason").get<std::string>(), trial);
}

}  // namespace dsat::host
