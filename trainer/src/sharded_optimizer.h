// From the summed gradient to the updated parameters, on the part of the model that this rank owns.
//
// Holds, for its shard, the fp32 master copy (bf16 only; otherwise the parameters are their own master) and the
// optimizer's states, all allocated in the constructor. A step takes no memory of its own.
// Threading: one rank, one thread; step() is collective. Errors: PeerLost.
#ifndef DSAT_TRAINER_SHARDED_OPTIMIZER_H_
#define DSAT_TRAINER_SHARDED_OPTIMIZER_H_

#include <functional>

#include "zero_context.h"

namespace dsat::trainer {

class ShardedOptimizer {
 public:
  // `parameters`: this rank's shard, updated in place, context.partition.shard_size() elements of context.dtype.
  // `fill_master` writes the initial values in fp32 into a zeroed array of as many; called for a master copy only.
  ShardedOptimizer(const ZeroContext& context, at::Tensor parameters, const std::function<void(float*)>& fill_master);

  // `gradient`: of the shard, summed over ranks and micro steps; it is not changed. Averages, clips and updates.
  void step(const at::Tensor& gradient);

  int64_t steps() const { return steps_; }

 private:
  double clipped_scale(const at::Tensor& gradient);
  void round_parameters();

  ZeroContext c_;
  at::Tensor parameters_;
  at::Tensor master_;               // fp32; without bf16 the parameters themselves
  std::vector<at::Tensor> states_;  // fp32, shard-sized
  int64_t steps_ = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SHARDED_OPTIMIZER_H_
