// The optimizer's arithmetic on a shard as tensors, wherever they lie: on the host with the plain loops of optimizer.h
// and lamb.h, on a device with its own operations, chunk by chunk so that little memory is taken.
//
// All tensors are flat and of one size; `param` and `states` in fp32 and on one device, which decides; the gradient is
// of any floating-point type and is not changed. `gradient_scale` multiplies every gradient (mean over ranks, loss
// scale, clipping). Threading: none of its own. Errors: what LibTorch throws.
#ifndef DSAT_TRAINER_ZERO_SHARD_UPDATE_H_
#define DSAT_TRAINER_ZERO_SHARD_UPDATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "optimizer/lamb.h"
#include "optimizer/optimizer.h"

namespace dsat::trainer {

struct ShardTensors {
  at::Tensor param;
  at::Tensor gradient;
  std::vector<at::Tensor> states;  // settings.num_states()

  ShardTensors narrow(int64_t begin, int64_t size) const;
};

// As update() of optimizer.h.
void update(const OptimizerSettings& settings, int64_t step, double gradient_scale, const ShardTensors& shard);

// As lamb_moments() and lamb_apply() of lamb.h, for elements of one parameter.
LambSquares lamb_moments(const OptimizerSettings& settings, double gradient_scale, const ShardTensors& run);
void lamb_apply(const OptimizerSettings& settings, int64_t step, double trust_ratio, const ShardTensors& run);

double sum_of_squares(const at::Tensor& values);

// The way of devices. Tests call it with tensors of the host, to compare it with the loops.
namespace on_device {

inline constexpr int64_t kChunk = int64_t{1} << 22;  // elements

void update(const OptimizerSettings& settings, int64_t step, double gradient_scale, const ShardTensors& shard);
LambSquares lamb_moments(const OptimizerSettings& settings, double gradient_scale, const ShardTensors& run);
void lamb_apply(const OptimizerSettings& settings, int64_t step, double trust_ratio, const ShardTensors& run);
double sum_of_squares(const at::Tensor& values);

}  // namespace on_device

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_SHARD_UPDATE_H_
