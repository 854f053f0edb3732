// Likelihoods and expectations of the standard normal distribution. Threading: pure functions. Errors: none.
#ifndef DSAT_COST_POSTERIOR_NORMAL_H_
#define DSAT_COST_POSTERIOR_NORMAL_H_

#include "dsat/base/normal.h"

namespace dsat::cost {

// A log likelihood, its slope, and the negative of its curvature.
struct Tail {
  double log_likelihood = 0, slope = 0, curvature = 0;
};

// log(e + (1 - 2 e) cdf(z)): a probit observation, where a share e of the observations has another cause.
inline Tail censored(double z, double other_cause) {
  if (other_cause == 0) {
    const double hazard = normal_hazard(z), u = 1 / (z * z);
    // In the far tail hazard + z is a difference of nearly equal numbers: its series (Abramowitz and Stegun 26.2.12).
    return {log_normal_cdf(z), hazard, z < kNormalTail ? 1 - u * (1 - 6 * u) : hazard * (hazard + z)};
  }
  const double inside = other_cause + (1 - 2 * other_cause) * normal_cdf(z);
  const double ratio = (1 - 2 * other_cause) * normal_density(z) / inside;
  return {std::log(inside), ratio, ratio * (ratio + z)};
}

// E[max(0, X)] of a normal X: the expected improvement (Jones, Schonlau and Welch, 1998, equation 15).
inline double expected_improvement(double mean, double deviation) {
  if (deviation <= 0) return mean > 0 ? mean : 0;
  const double z = mean / deviation;
  return deviation * (normal_density(z) + z * normal_cdf(z));
}

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_NORMAL_H_
