// From the summed gradient to the updated parameters, on the part of the model that this rank owns.
//
// Holds, for its shard, the fp32 master copy and the optimizer's states, all allocated in the constructor: on the
// device, or with offload_optimizer in host memory. Without bf16 and without offload the parameters are their own
// master. A step takes no memory of its own.
// With mixed precision and Adam these are the K = 12 bytes a parameter of the ZeRO paper (SC 2020, section 3.1).
// Ownership: borrows the context, shares the parameters' shard. Threading: the compute thread; step() is collective.
// Units: elements in sizes. Errors: PeerLost; dsat::Error from the loss scaler.
#ifndef DSAT_TRAINER_ZERO_SHARDED_OPTIMIZER_H_
#define DSAT_TRAINER_ZERO_SHARDED_OPTIMIZER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layout/owned_ranges.h"
#include "optimizer/loss_scaler.h"
#include "zero/model_parts.h"
#include "zero/shard_update.h"
#include "zero/zero_context.h"

namespace dsat::trainer {

// An fp32 array of the shard that a checkpoint keeps.
struct NamedShard {
  std::string name;  // "master", "state1", "state2"
  at::Tensor values;
};

// The sum of squares of the whole model's summed gradient, from this rank's shard of it; collective.
using SquaredNorm = std::function<double(const at::Tensor& gradient)>;

class ShardedOptimizer {
 public:
  // `parameters`: this rank's shard, updated in place, context.partition.shard_size() elements of context.dtype.
  // `fill_master` writes the initial values into a zeroed fp32 array of as many: the master copy, or `parameters`.
  // `squared_norm`: where the model goes beyond this group, as in a pipeline; else the group's shards are all there is.
  // `groups`: by ParameterSpec::update.
  ShardedOptimizer(const ZeroContext& context, at::Tensor parameters, std::vector<UpdateGroup> groups,
                   const std::function<void(const at::Tensor&)>& fill_master, SquaredNorm squared_norm = {});

  // `gradient`: of the shard, summed over ranks and micro steps and multiplied by loss_scale(); it is not changed.
  // Averages, unscales, clips and updates. False: it overflowed on some rank, and all ranks have skipped the update.
  bool step(const at::Tensor& gradient);

  double loss_scale() const { return scaler_.scale(); }
  double learning_rate() const;  // of the next update, UpdateGroup::lr_scale apart
  // In place of the configuration's schedule, until the other one is called or given nothing.
  void set_learning_rate(double rate);
  void set_schedule(std::function<double(int64_t updates)> schedule);
  // The norm of the mean gradient over all ranks at the last step, before clipping. nullopt: nothing needed it, neither
  // clipping, a loss scale nor a tuning trial.
  std::optional<double> gradient_norm() const { return gradient_norm_; }
  int64_t updates() const { return updates_; }
  int64_t skipped_steps() const { return skipped_steps_; }

  // After the parameters' shard was changed from outside: the master copy takes those elements that are not its own
  // values, rounded. The others keep what rounding has dropped.
  void adopt_parameters();
  // And the other way: the parameters' shard from the master copy.
  void publish_master();

  // What a checkpoint keeps, and takes up again: overwrite the arrays, then call restore(). The parameters' shard is
  // then as after the update; other ranks' parts of the parameters are not.
  const std::vector<OwnedRange>& ranges() const { return ranges_; }
  std::vector<NamedShard> arrays() const;
  Json state() const;
  void restore(const Json& state);

 private:
  double squares_of(const at::Tensor& gradient);
  void update_with_lamb(const ShardTensors& shard, double scale);
  OptimizerSettings settings_now(int64_t group) const;

  ZeroContext c_;
  SquaredNorm squared_norm_;
  // Elements of the shard that are updated alike.
  struct Run {
    int64_t begin, size, group;
  };
  std::vector<Run> runs_of_groups() const;

  std::vector<OwnedRange> ranges_;
  std::vector<UpdateGroup> groups_;
  std::vector<int64_t> group_of_;  // by ParameterSlot::id
  std::vector<Run> runs_;
  std::optional<double> set_rate_;
  std::function<double(int64_t updates)> set_schedule_;
  at::Tensor parameters_;
  at::Tensor master_;               // fp32; may be the parameters themselves
  std::vector<at::Tensor> states_;  // fp32, shard-sized
  at::Tensor host_gradient_;        // offload where the gradient's shard stays on the device (stage 1)
  LossScaler scaler_;
  std::optional<double> gradient_norm_;
  int64_t updates_ = 0;
  int64_t skipped_steps_ = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_SHARDED_OPTIMIZER_H_
