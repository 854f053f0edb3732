// Lamb: Adam's direction, made as long as the parameter itself (You et al., "Large Batch Optimization for Deep
// Learning: Training BERT in 76 minutes", 2019), in the form of DeepSpeed's FusedLamb.
//
// Two passes over a shard, because the length of a parameter that is spread over ranks is known only after a sum over
// them: lamb_moments() advances the moments and gives this rank's part of the norms, lamb_apply() moves the parameter.
// Units: elements. Ownership: the caller owns every array. Threading: pure functions on their arguments. Errors: none.
#ifndef DSAT_TRAINER_OPTIMIZER_LAMB_H_
#define DSAT_TRAINER_OPTIMIZER_LAMB_H_

#include "optimizer/optimizer.h"

namespace dsat::trainer {

// Sums of squares over a part of one parameter; those of the parts add up.
struct LambSquares {
  double param = 0;
  double direction = 0;
};

// `run`: elements of one parameter. The gradient is multiplied by `gradient_scale` first.
LambSquares lamb_moments(const OptimizerSettings& settings, float gradient_scale, const ShardView<float>& run);
LambSquares lamb_moments(const OptimizerSettings& settings, float gradient_scale, const ShardView<BFloat16>& run);

// Length of the parameter over length of the direction, within min_coeff and max_coeff; 1 where one of them is 0.
double lamb_trust_ratio(const OptimizerSettings& settings, const LambSquares& whole_parameter);

// The learning rate of the update number `step` (from 1), with the correction of the moments' bias.
double lamb_rate(const OptimizerSettings& settings, int64_t step);

// The update number `step` (from 1) of `size` elements; `state1`, `state2` as lamb_moments() left them.
void lamb_apply(const OptimizerSettings& settings, int64_t step, double trust_ratio, float* param, const float* state1,
                const float* state2, int64_t size);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_OPTIMIZER_LAMB_H_
