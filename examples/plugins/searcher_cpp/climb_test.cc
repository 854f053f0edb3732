// A unit test of climb: the bench takes the host's place, and a function the training's.
#include "climb.cc"

#include <dsat/testing.h>

#include <cstdio>

int main() {
  dsat::config::Space space;
  space.stages = {{1, {}}, {2, {}}};
  dsat::Study study;
  study.metric = "throughput";
  study.zero_stages = {1, 2};
  study.base_config = dsat::Json::object();
  study.space = dsat::config::to_json(space);
  study.limits.max_trials = 50;
  study.limits.max_concurrent_trials = 1;

  // Stage 2 is faster, and at most 32 samples fit.
  const auto train = [](const dsat::testing::Trial& trial) {
    if (trial.micro_batch() > 32) return dsat::testing::Answer::out_of_memory();
    return dsat::testing::Answer::completed({{"throughput", 10.0 * trial.stage() * trial.micro_batch()}});
  };
  dsat::testing::Bench bench(dsat::testing::factory<Climb>(), "climb", study, train);
  if (!bench.run()) {
    std::fprintf(stderr, "%s\n", bench.error().c_str());
    return 1;
  }
  const dsat::testing::Trial& best = bench.asked().at(bench.best());
  std::printf("best: stage %d, micro batch %lld\n", best.stage(), static_cast<long long>(best.micro_batch()));
  return best.stage() == 2 && best.micro_batch() == 32 ? 0 : 1;
}
