// Callbacks: user code that runs beside the training. A trial may have several, each with a name.
//
// All hooks run on every rank, in the order of the callbacks' names. A checkpoint keeps the state_dict() of each rank;
// load_state_dict() restores it before on_trial_startup().
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

  // Batches are optimizer steps over the whole training. Batches and epochs are counted from 0.
  virtual void on_trial_startup(int64_t /*first_batch*/) {}
  virtual void on_training_start() {}
  virtual void on_training_epoch_start(int64_t /*epoch*/) {}
  virtual void on_training_step_start(int64_t /*batch*/) {}
  // `metrics`: the metrics of this rank, averaged over the step's micro batches.
  virtual void on_training_step_end(int64_t /*batch*/, const Json& /*metrics*/) {}
  virtual void on_training_epoch_end(int64_t /*epoch*/) {}
  // After a report (--report-every). `means`: the reported metrics of all ranks. `steps`: the metrics of each
  // on_training_step_end() since the last report, in order.
  virtual void on_training_workload_end(const Json& /*means*/, const std::vector<Json>& /*steps*/) {}
  virtual void on_validation_start() {}
  // Before the first batch of a validation, and after the last. `batches`: the results of evaluate_batch() on this
  // rank.
  virtual void on_validation_epoch_start() {}
  virtual void on_validation_epoch_end(const std::vector<Json>& /*batches*/) {}
  // `metrics`: the reduced metrics of all ranks.
  virtual void on_validation_end(const Json& /*metrics*/) {}
  // Before the trial's load() and load_state_dict(). `path`: the folder of the checkpoint.
  virtual void on_checkpoint_load_start(const std::string& /*path*/) {}
  // The callback may write further files to `path`.
  virtual void on_checkpoint_save_start(const std::string& /*path*/) {}
  // After this rank has written its part; then, after all ranks have, when the checkpoint is valid.
  virtual void on_checkpoint_write_end(const std::string& /*path*/) {}
  virtual void on_checkpoint_end(const std::string& /*path*/) {}
  // The last call, always after on_trial_startup(): the steps are done, a stop was requested, or this rank had an
  // exception. In the last case an exception of this call becomes a warning.
  virtual void on_trial_shutdown() {}

  virtual Json state_dict() const { return Json::object(); }
  virtual void load_state_dict(const Json& /*state*/) {}
};

using Callbacks = std::map<std::string, std::shared_ptr<Callback>>;

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_CALLBACK_H_
