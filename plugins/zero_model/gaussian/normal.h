// The normal distribution, and likelihoods made of it. Threading: pure functions.
#ifndef DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_NORMAL_H_
#define DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_NORMAL_H_

#include <cmath>

namespace dsat::guided {

inline double normal_density(double z) { return 0.3989422804014327 * std::exp(-0.5 * z * z); }
inline double normal_cdf(double z) { return 0.5 * std::erfc(-0.7071067811865476 * z); }

// log(e + (1 - 2 e) cdf(z)), its slope, and the negative of its curvature: a probit observation in which a share e has
// another cause.
struct Tail {
  double log_likelihood = 0, slope = 0, curvature = 0;
};
inline Tail censored(double z, double other_cause) {
  // Where the distribution function underflows: its asymptote.
  constexpr double kUnderflow = -30;
  if (other_cause == 0 && z < kUnderflow) {
    return {-0.5 * z * z - std::log(-2.5066282746310002 * z), -z, 1};
  }
  const double inside = other_cause + (1 - 2 * other_cause) * normal_cdf(z);
  const double ratio = (1 - 2 * other_cause) * normal_density(z) / inside;
  return {std::log(inside), ratio, ratio * (ratio + z)};
}

// E[max(0, X)] of a normal X: the expected improvement (Jones, Schonlau and Welch, 1998).
inline double expected_positive(double mean, double deviation) {
  if (deviation <= 0) return mean > 0 ? mean : 0;
  const double z = mean / deviation;
  return deviation * (normal_density(z) + z * normal_cdf(z));
}

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_NORMAL_H_
