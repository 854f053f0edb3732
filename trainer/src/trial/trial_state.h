// What a TrialContext holds, for it and for the loop that runs the trial.
//
// Threading: one rank, one thread; the stop signal may come on any. Ownership: borrows the World, shares engines.
#ifndef DSAT_TRAINER_TRIAL_TRIAL_STATE_H_
#define DSAT_TRAINER_TRIAL_TRIAL_STATE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "dsat/trainer/context.h"
#include "dsat/trainer/profiler.h"

namespace dsat::trainer {

struct TrialContext::State {
  State(World& world, Json experiment, std::filesystem::path tensorboard);
  // `asked` stands in the error where there is none yet.
  const ModelEngine& first_engine(const char* asked) const;
  int64_t batch_in_epochs() const { return batch + epoch_shift; }

  World& world;
  Json experiment;  // with the hyperparameters of the tuning run, if there is one
  bool tuning = false;
  std::vector<std::shared_ptr<ModelEngine>> engines;
  std::optional<ModelParallelUnit> mpu;  // set by the trial, or known to an engine
  bool mpu_is_the_trials = false;
  Reducers reducers;
  bool auto_accumulation = true;
  bool reproducibility_checks = true;
  bool tensorboard_logging = true;
  std::filesystem::path tensorboard;
  std::unique_ptr<EventWriter> writer;
  std::unique_ptr<Profiler> profiler;
  int64_t initial_batch = 0;      // the first one of this run
  int64_t batch = 0;              // the optimizer step under way
  int64_t batches_per_epoch = 0;  // 0: no loader yet
  // Steps that a run of this size would have made up to the place in the epochs where this one has begun, less those
  // that were made: 0 unless it goes on from a checkpoint of another size.
  int64_t epoch_shift = 0;
  bool stop_requested = false;
};

// Makes SIGTERM a request to stop, in this process. It ends at a second one, or when it has not ended by itself after
// `grace_s` seconds and a little more.
void listen_for_stop_signal(int64_t grace_s);
bool stop_signalled();

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_TRIAL_STATE_H_
