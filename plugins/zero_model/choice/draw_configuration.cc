// Fits a surrogate to the study's trials, lets the acquisition search once, and takes the first proposal whose
// configuration the searcher may use.
#include "zero_model/choice/draw_configuration.h"

#include "zero_model/choice/acquisition.h"

namespace dsat::zero_model {

std::optional<search::Configuration> draw_configuration(
    const Study& study, const SearcherTrials& trials, uint64_t index,
    const std::function<bool(const search::Configuration&)>& usable) {
  constexpr Risk kRisk = {0.05, 0.05};
  ModelSpace space(study);
  Surrogate surrogate(study, space);
  for (const SearcherTrials::Past& past : trials.past) {
    const Point point{space.arm(past.configuration), past.micro_batch};
    surrogate.learn({past.trial, point, past.outcome, past.metric, past.peak_bytes});
  }
  std::vector<Point> pending;
  for (const SearcherTrials::Pending& one : trials.pending) {
    pending.push_back({space.arm(one.configuration), one.micro_batch});
  }
  Acquisition acquisition(space, surrogate, study.seed, /*concurrent=*/false);
  // Pending trials are either sampled by the acquisition or counted in by the surrogate.
  surrogate.update(acquisition.by_draws() ? std::vector<Point>() : pending);
  std::vector<Proposal> proposals;
  if (const auto best = acquisition.next(pending, kRisk, index)) proposals.push_back(*best);
  for (const Proposal& proposal : acquisition.ranked()) proposals.push_back(proposal);
  for (const Proposal& proposal : proposals) {
    const Arm& arm = *proposal.point.arm;
    search::Configuration configuration{arm.stage, arm.choice};
    if (arm.in_space && usable(configuration)) return configuration;
  }
  return std::nullopt;
}

}  // namespace dsat::zero_model
