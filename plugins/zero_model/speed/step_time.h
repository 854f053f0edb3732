// The step time model: how long the phases of a ZeRO step take, up to constants that the trials teach.
//
// Purpose: the mean of the speed model. Each phase is a sum of terms with broad priors. A few trials scale the
//   terms; time_model.h corrects the remaining error by a residual.
//     compute        time at a reference x (m + half) / (reference + half): throughput m / (m + half) saturates with
//                    the micro batch m, and `half` is unknown after a single trial. If the device works in waves, a
//                    share of m counts as the samples that whole waves hold (waves.h). No pass is shorter than the
//                    launch of its kernels by the host. At stage 3 the host also calls hooks for each module. A
//                    pipeline stage computes its share of the model, and waits in the pipeline's bubble
//     communication  volume / bandwidth + messages x latency (the alpha-beta model: Hockney 1994; Thakur et al. 2005),
//                    volumes by ZeRO stage (Rajbhandari et al., arXiv:1910.02054, section 7), one message a bucket
//     overlap        compute and communication join in a p-norm: p = 1 adds them, a large p hides the smaller; no
//                    compute is left to hide the last message (a reduce or a prefetch bucket)
//     step           memory traffic of the optimizer over the partition, parameters gathered back, offload traffic
// Units: microseconds, elements, bytes. Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_STEP_TIME_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_STEP_TIME_H_

#include <Eigen/Dense>

#include "zero_model/space/space.h"

namespace dsat::zero_model {

// `total` is for trials that report no phases: one micro step's share of an optimizer step.
enum class StepPhase { forward, backward, step, total };

// The properties of a point from which the times of its phases follow.
struct Load {
  double micro_batch = 1, accumulation = 1, ranks = 1;
  double reference = 1;  // a measured micro batch; the compute time at it is a constant of the model
  double wave = 0;       // samples of a wave; 0: none
  double compute = 1;    // time of a sample, relative to the base configuration
  double params = 1e9, param_bytes = 2e9;
  double reduce_messages = 1, gather_messages = 1, prefetch_messages = 1;
  double reduce_share = 1, prefetch_share = 1;  // one bucket's share of all parameters
  int stage = 0;
  bool overlap = false, reduce_scatter = true, offload_optimizer = false, offload_params = false;
};
Load load_of(const ModelSpace& space, const Point& point);

// The logarithms of the constants are independent normals.
struct StepTimePrior {
  Eigen::VectorXd mean, deviation;
};

// `first` and `first_us`: any measured point and its time, which set the scale of compute. If first.wave is not 0, each
// pass has one more constant. All loads of a phase have the same wave.
StepTimePrior prior_of(StepPhase phase, const Load& first, double first_us);

// log(time in us) of a phase. `constants`: the constants themselves, not their logarithms.
double log_time(StepPhase phase, const Load& load, const Eigen::VectorXd& constants);

// The derivatives of log_time() by the logarithms of the constants; `value` is log_time() there.
Eigen::RowVectorXd log_time_gradient(StepPhase phase, const Load& load, const Eigen::VectorXd& constants, double value);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_STEP_TIME_H_
