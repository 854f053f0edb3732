#include "asha/guided_draw.h"

#include "zero_model/choice/acquisition.h"
#include "zero_model/choice/read_observation.h"

namespace dsat::guided {
namespace {

constexpr Risk kRisk = {0.05, 0.05};

void learn(const StudySoFar& so_far, Lattice& lattice, Beliefs& beliefs) {
  for (const StudySoFar::Ended& one : so_far.ended) {
    Ended ended;
    ended.trial = one.trial;
    ended.point = {lattice.arm(one.configuration), one.micro_batch};
    ended.outcome = one.outcome;
    ended.metric = positive(one.metric);
    ended.peak_bytes = positive(one.peak_bytes);
    beliefs.learn(ended);
  }
}

}  // namespace

std::optional<search::Configuration> draw(const Study& study, const StudySoFar& so_far, uint64_t index,
                                          const std::function<bool(const search::Configuration&)>& usable) {
  Lattice lattice(study);
  Beliefs beliefs(study, lattice);
  for (const Json& observation : study.observations) {
    if (const auto ended = ended_of(observation, study.metric, lattice)) beliefs.learn(*ended);
  }
  learn(so_far, lattice, beliefs);
  std::vector<Point> running;
  for (const auto& one : so_far.running) running.push_back({lattice.arm(one.configuration), one.micro_batch});
  beliefs.update(running);
  Planner planner(lattice, beliefs, study.seed, false);
  std::vector<Proposal> proposals;
  if (const auto best = planner.next(running, kRisk, index)) proposals.push_back(*best);
  for (const Proposal& proposal : planner.ranked()) proposals.push_back(proposal);
  for (const Proposal& proposal : proposals) {
    const Arm& arm = *proposal.point.arm;
    search::Configuration configuration{arm.stage, arm.choice};
    if (arm.in_space && usable(configuration)) return configuration;
  }
  return std::nullopt;
}

}  // namespace dsat::guided
