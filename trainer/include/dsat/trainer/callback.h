// What a user's code does beside the training: any number of callbacks, each with a name.
//
// All hooks run on every rank, in the order of the callbacks' names. What state_dict() gives is in the checkpoint, rank
// by rank, and comes back through load_state_dict() before on_trial_startup().
// Threading: one rank, one thread. Ownership: shared with the trial. Errors: an exception ends the trial on all ranks.
#ifndef DSAT_TRAINER_CALLBACK_H_
#define DSAT_TRAINER_CALLBACK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "dsat/error.h"

namespace dsat::trainer {

class Callback {
 public:
  virtual ~Callback() = default;

  // Batches are optimizer steps, counted from 0 over the whole training; epochs from 0.
  virtual void on_trial_startup(int64_t /*first_batch*/) {}
  virtual void on_training_start() {}
  virtual void on_training_epoch_start(int64_t /*epoch*/) {}
  virtual void on_training_step_start(int64_t /*batch*/) {}
  // `metrics`: of this rank, averaged over the step's micro batches.
  virtual void on_training_step_end(int64_t /*batch*/, const Json& /*metrics*/) {}
  virtual void on_training_epoch_end(int64_t /*epoch*/) {}
  virtual void on_validation_start() {}
  // `metrics`: of all ranks, reduced.
  virtual void on_validation_end(const Json& /*metrics*/) {}
  // `path`: the checkpoint's folder; more files may be put there.
  virtual void on_checkpoint_save_start(const std::string& /*path*/) {}
  virtual void on_checkpoint_end(const std::string& /*path*/) {}
  // The training has ended as it should: steps done, or stopped on request.
  virtual void on_trial_shutdown() {}

  virtual Json state_dict() const { return Json::object(); }
  virtual void load_state_dict(const Json& /*state*/) {}
};

using Callbacks = std::map<std::string, std::shared_ptr<Callback>>;

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_CALLBACK_H_
