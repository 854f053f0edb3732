// Few candidates: the place of a jump, and two sizes of a walk.
#include "zero_model/speed/trend.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {

std::vector<Trend> possible_trends(const Eigen::VectorXd& orders) {
  constexpr double kLogPrior = -5;         // most machines are steady
  constexpr double kJump = 0.3;            // a usual one
  constexpr Eigen::Index kLeast = 3;       // measurements before a jump and after it: fewer may be outliers
  constexpr Eigen::Index kMostJumps = 48;  // in a long study every second or third place will do
  std::vector<Trend> trends{Trend{}};
  const Eigen::Index count = orders.size();
  if (count < 2 * kLeast) return trends;
  for (const double walk : {0.1, 0.3}) trends.push_back({Trend::Kind::walk, walk, 0, kLogPrior - std::log(2)});
  Eigen::VectorXd sorted = orders;
  std::sort(sorted.data(), sorted.data() + count);
  const double log_places = std::log(static_cast<double>(count - 2 * kLeast + 1));
  for (Eigen::Index at = kLeast; at <= count - kLeast; at += 1 + count / kMostJumps) {
    trends.push_back({Trend::Kind::jump, kJump, sorted[at], kLogPrior - log_places});
  }
  return trends;
}

Eigen::MatrixXd covariance_of(const Trend& trend, const Eigen::VectorXd& orders) {
  const double last = orders.maxCoeff(), span = std::max(1.0, last - orders.minCoeff());
  const double variance = trend.amplitude * trend.amplitude;
  return Eigen::MatrixXd::NullaryExpr(orders.size(), orders.size(), [&](Eigen::Index i, Eigen::Index j) {
    const double later = std::max(orders[i], orders[j]);
    return variance * (trend.kind == Trend::Kind::jump ? (later < trend.jump_at ? 1 : 0) : (last - later) / span);
  });
}

}  // namespace dsat::zero_model
