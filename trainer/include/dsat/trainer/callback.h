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
#include <vector>

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
  // After a report (--report-every). `means`: what was reported, of all ranks. `steps`: what on_training_step_end() was
  // given since the last report, in order.
  virtual void on_training_workload_end(const Json& /*means*/, const std::vector<Json>& /*steps*/) {}
  virtual void on_validation_start() {}
  // Before the first batch of a validation, and after the last; `batches`: what evaluate_batch() gave on this rank.
  virtual void on_validation_epoch_start() {}
  virtual void on_validation_epoch_end(const std::vector<Json>& /*batches*/) {}
  // `metrics`: of all ranks, reduced.
  virtual void on_validation_end(const Json& /*metrics*/) {}
  // `path`: a checkpoint's folder, before the trial's load() and load_state_dict() read it.
  virtual void on_checkpoint_load_start(const std::string& /*path*/) {}
  // More files may be put there.
  virtual void on_checkpoint_save_start(const std::string& /*path*/) {}
  // This rank has written its part; and: every rank has, the checkpoint counts from now on.
  virtual void on_checkpoint_write_end(const std::string& /*path*/) {}
  virtual void on_checkpoint_end(const std::string& /*path*/) {}
  // The last call, after on_trial_startup() in any case: steps done, stopped on request, or an exception on this rank.
  // What it throws after an exception becomes a warning.
  virtual void on_trial_shutdown() {}

  virtual Json state_dict() const { return Json::object(); }
  virtual void load_state_dict(const Json& /*state*/) {}
};

using Callbacks = std::map<std::string, std::shared_ptr<Callback>>;

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_CALLBACK_H_
