// Asks for one candidate after the other, until one completes.
#include "finals/verification.h"

#include <fmt/format.h>

#include "dsat/config/json.h"
#include "finals/finals.h"

namespace dsat::host {

void Verification::start(const Json& brief) {
  brief_ = brief;
  ask_next();
}

void Verification::trial_ended(const Ended& ended) {
  // A trial that was lost or stopped says nothing against the candidate, which is named but stays unverified.
  const bool shows_nothing = ended.outcome == Outcome::lost || ended.outcome == Outcome::stopped;
  if (ended.outcome != Outcome::completed && !shows_nothing) return ask_next();
  finish(brief_.at("reason").get<std::string>(),
         config::whole_number<uint64_t>(brief_.at("candidates").at(next_ - 1).at("trial")));
}

// If no trial is left, the next candidate is named without a verification: those before it have failed.
void Verification::ask_next() {
  const Json& candidates = brief_.at("candidates");
  if (next_ >= candidates.size()) return finish(brief_.at("reason").get<std::string>(), std::nullopt);
  const Json& one = candidates[next_++];
  const auto trial = config::whole_number<uint64_t>(one.at("trial"));
  const std::string note =
      fmt::format("trial {} for {} further steps", trial, config::whole_number<int>(brief_.at("steps")));
  if (next_ <= kMostFinalists && ask(one.at("overrides"), note, true)) return;
  finish(brief_.at("reason").get<std::string>(), trial);
}

}  // namespace dsat::host
