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

struct TrialProgress {
  int64_t batch = 0;    // optimizer steps done
  int64_t samples = 0;  // of the training data that all ranks have taken
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
  std::filesystem::path folder_;
  std::string trial_name_;
  Trial& trial_;
  TrialContext& context_;
  Callbacks& callbacks_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_TRIAL_CHECKPOINT_H_
