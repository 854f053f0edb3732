// Adam, AdamW and SGD on one rank's shard (Lamb: lamb.h), as plain loops: an optimizer step takes no memory of its own,
// so the peak of a step is decided by forward and backward alone.
//
// Units: elements; norms are L2. Ownership: the caller owns every array. Threading: pure functions on their arguments.
// Errors: none. Sources: Kingma and Ba, "Adam", 2015; Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
// 2019; SGD with momentum as torch.optim.SGD defines it.
#ifndef DSAT_TRAINER_OPTIMIZER_OPTIMIZER_H_
#define DSAT_TRAINER_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>

#include "base/bfloat16.h"

namespace dsat::trainer {

struct OptimizerSettings {
  enum class Kind { adam, sgd, lamb };
  Kind kind = Kind::adam;
  bool decoupled_weight_decay = true;  // AdamW; false: L2 added to the gradient (adam_w_mode: false)
  bool bias_correction = true;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  bool eps_inside_sqrt = false;  // Lamb
  double min_coeff = 0.01;       // Lamb: bounds of the trust ratio
  double max_coeff = 10;

  // Arrays of float per parameter that it keeps: Adam and Lamb two moments, SGD its momentum buffer if it has momentum.
  int num_states() const { return kind == Kind::sgd ? (momentum != 0 ? 1 : 0) : 2; }
};

// One shard. `param` is the fp32 (master) copy; state1, state2 may be null as num_states() says.
template <typename Gradient>
struct ShardView {
  float* param;
  const Gradient* gradient;
  float* state1;
  float* state2;
  int64_t size;
};

// The update number `step` (from 1) of Adam or SGD. The gradient is multiplied by `gradient_scale` first: averaging and
// clipping.
void update(const OptimizerSettings& settings, int64_t step, float gradient_scale, const ShardView<float>& shard);
void update(const OptimizerSettings& settings, int64_t step, float gradient_scale, const ShardView<BFloat16>& shard);

// Sum of squares, in double: the order of summation does not show in the clipping factor.
double sum_of_squares(const float* values, int64_t size);
double sum_of_squares(const BFloat16* values, int64_t size);

// What the averaged gradient is multiplied by so that its norm stays within max_norm; max_norm 0: no clipping.
double clip_factor(double norm, double max_norm);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_OPTIMIZER_OPTIMIZER_H_
