// How long the phases of a ZeRO step take, up to constants that are learned.
//
// Purpose: the mean of the speed model. Each phase is a sum of terms with broad priors, so that a handful of trials
//   scales it and what it gets wrong is left to the residual (phase_model.h):
//     compute        time at a reference x (m + half) / (reference + half): throughput m / (m + half) saturates with
//                    the micro batch m, and what is known of the time says nothing of where it does
//     communication  volume / bandwidth + messages x latency (the alpha-beta model: Hockney 1994; Thakur et al. 2005),
//                    volumes by ZeRO stage (Rajbhandari et al., arXiv:1910.02054, section 7), one message a bucket
//     overlap        compute and communication join in a p-norm: p = 1 adds them, a large p hides the smaller; the
//                    last bucket has nothing left to hide behind
//     step           memory traffic of the optimizer over the partition, parameters gathered back, offload traffic
// Units: microseconds, elements, bytes. Threading: pure functions.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_STEP_TIME_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_STEP_TIME_H_

#include <Eigen/Dense>

#include "zero_model/space/space.h"

namespace dsat::guided {

// `total` is one micro step's share of an optimizer step: where trials tell no phases.
enum class Phase { forward, backward, step, total };

// What of a point decides its phases.
struct Load {
  double micro_batch = 1, accumulation = 1, ranks = 1;
  double reference = 1;  // micro batch at which the compute time is an unknown: one that was measured
  double params = 1e9, param_bytes = 2e9;
  double reduce_messages = 1, gather_messages = 1, prefetch_messages = 1;
  double last_bucket_share = 1;  // of a reduce bucket in all gradients
  int stage = 0;
  bool overlap = false, reduce_scatter = true, offload_optimizer = false, offload_params = false;
};
Load load_of(const Lattice& lattice, const Point& point);

// The logarithms of the unknowns: independent normals.
struct Prior {
  Eigen::VectorXd mean, deviation;
};

// `first` and `first_us`: any measured point and its time, which set the scale of compute.
Prior prior_of(Phase phase, const Load& first, double first_us);

// log(time in us) of a phase. `constants`: the unknowns themselves, not their logarithms.
double log_time(Phase phase, const Load& load, const Eigen::VectorXd& constants);

// Its derivatives by the logarithms of the constants; `value` is log_time() there.
Eigen::RowVectorXd log_time_gradient(Phase phase, const Load& load, const Eigen::VectorXd& constants, double value);

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_STEP_TIME_H_
