// The standard normal distribution, exact far into the lower tail, where its density and its distribution function
// underflow. Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_NORMAL_H_
#define DSAT_BASE_NORMAL_H_

#include <cmath>

namespace dsat {

inline double normal_density(double z) { return 0.3989422804014327 * std::exp(-0.5 * z * z); }
inline double normal_cdf(double z) { return 0.5 * std::erfc(-0.7071067811865476 * z); }

// Below this point the asymptotic series of the tail (Abramowitz and Stegun 26.2.12) is exact to 2e-10 or better.
inline constexpr double kNormalTail = -30;

// log of normal_cdf(z).
inline double log_normal_cdf(double z) {
  if (z >= kNormalTail) return std::log(normal_cdf(z));
  const double u = 1 / (z * z);
  return -0.5 * z * z - std::log(-2.5066282746310002 * z) + std::log1p(-u * (1 - u * (3 - 15 * u)));
}

// normal_density(z) / normal_cdf(z): the slope of log_normal_cdf, also called the inverse Mills ratio.
inline double normal_hazard(double z) {
  if (z >= kNormalTail) return normal_density(z) / normal_cdf(z);
  const double u = 1 / (z * z);
  return -z / (1 - u * (1 - u * (3 - 15 * u)));
}

}  // namespace dsat

#endif  // DSAT_BASE_NORMAL_H_
