// Spaces whose values bear on the sizes of a trial. In one two sizes clash only together: a pipeline of four stages on
// two devices. No formula can read such a trial, and the host would refuse it.
#ifndef DSAT_TESTS_PLUGINS_CLASHING_SIZES_H_
#define DSAT_TESTS_PLUGINS_CLASHING_SIZES_H_

#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "plugins/surface.h"

namespace dsat::tests {

inline Study study_of_clashing_sizes(const Surface& surface) {
  config::Space space = small_space({1});
  space.stages[0].axes.push_back({config::kNumGpusKey, {2, 4}});
  space.stages[0].axes.push_back({config::kPipelineStagesKey, {1, 4}});
  Study study = make_study(surface, space);
  config::set(study.base_config, config::kNumNodesKey, 1);
  return study;
}

// Pipelines of 4, 1 and 2 stages on four devices, with a bound of the train batch: the fewer the stages, the smaller
// the largest micro batch.
inline Study study_of_bounded_train_batch(const Surface& surface, int64_t most) {
  config::Space space = small_space({1});
  space.stages[0].axes = {{config::kPipelineStagesKey, {4, 1, 2}}};
  space.max_micro_batch = most;
  Study study = make_study(surface, space);
  study.space["max_train_batch_size"] = most;
  config::set(study.base_config, config::kNumGpusKey, 4);
  config::set(study.base_config, config::kNumNodesKey, 1);
  return study;
}

// Counts the trials that no formula can read.
inline testing::AnswerFunction refusing_clashes(const Surface& surface, int& unreadable) {
  return [surface, &unreadable](const testing::Trial& trial) -> testing::Answer {
    const bool clashes = *config::find(trial.config, config::kNumGpusKey) == 2 &&
                         *config::find(trial.config, config::kPipelineStagesKey) == 4;
    if (!clashes) return surface.answer(trial);
    ++unreadable;
    return {Outcome::invalid_config, {}, std::nullopt, "2 is no multiple of 4"};
  };
}

}  // namespace dsat::tests

#endif  // DSAT_TESTS_PLUGINS_CLASHING_SIZES_H_
