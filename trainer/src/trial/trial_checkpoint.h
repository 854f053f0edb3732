// Checkpoints of a trial: a folder of its own for each, and a file `latest.json` that names the newest whole one.
//
// A checkpoint counts once `latest.json` names it, so a run that is killed while it writes one goes on from the one
// before. Threading: one rank, one thread; all functions are collective. Errors: dsat::Error, one line that names the
// file.
#ifndef DSAT_TRAINER_TRIAL_TRIAL_CHECKPOINT_H_
#define DSAT_TRAINER_TRIAL_TRIAL_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "dsat/trainer/context.h"
#include "dsat/trainer/trial.h"

namespace dsat::trainer {

// Places in passes and epochs, because their lengths follow from the number of ranks: a pass is filled up to whole
// micro batches of all ranks.
struct TrialProgress {
  int64_t batch = 0;              // optimizer steps done
  int64_t pass = 0;               // passes over the training data done
  int64_t samples_of_pass = 0;    // that all ranks have taken of the pass under way
  int64_t epoch = 0;              // epochs done
  int64_t batch_of_epoch = 0;     // optimizer steps done of the epoch under way
  int64_t batches_per_epoch = 1;  // of the run that saved
};

class TrialCheckpoints {
 public:
  // `trial_name`: a checkpoint of another one is refused. An empty folder name: no checkpoints. Borrows the rest.
  TrialCheckpoints(std::filesystem::path folder, std::string trial_name, Trial& trial, TrialContext& context,
                   Callbacks& callbacks);

  void save(const TrialProgress& progress);
  // Nothing is there: the start.
  TrialProgress load();
  bool enabled() const { return !folder_.empty(); }

 private:
  Json callback_states(const std::filesystem::path& folder, const Json& description) const;

  std::filesystem::path folder_;
  std::string trial_name_;
  Trial& trial_;
  TrialContext& context_;
  Callbacks& callbacks_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_TRIAL_CHECKPOINT_H_
