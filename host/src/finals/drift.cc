// Fits one slope over the order of the trials to the distances of repeats from their configurations' means.
#include "finals/drift.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "finals/gain.h"

namespace dsat::host {
namespace {

constexpr double kClear = 0.99;        // of the distribution of a difference without a drift
constexpr double kLeastChange = 0.05;  // a smaller change of the machine changes no decision

struct Repeat {
  double order = 0, value = 0;
};

}  // namespace

bool differ_clearly(const std::vector<double>& early, const std::vector<double>& late, const Repeats& others) {
  if (early.empty() || late.empty()) return false;
  const Difference apart = difference(early, late, others);
  return std::abs(apart.mean) > kLeastChange &&
         std::abs(apart.mean) > apart.scale * student_quantile(kClear, apart.degrees);
}

std::vector<double> comparable(const std::vector<double>& early, const std::vector<double>& late,
                               const Repeats& others) {
  if (differ_clearly(early, late, others)) return late;
  std::vector<double> all = early;
  all.insert(all.end(), late.begin(), late.end());
  return all;
}

std::optional<double> drift_of(const std::vector<Trial>& trials, const std::string& metric, bool maximise) {
  std::map<std::string, std::vector<Repeat>> by_identity;
  for (const Trial& trial : trials) {
    const auto value = value_of(trial, metric, maximise);
    if (value) by_identity[trial.identity].push_back({static_cast<double>(trial.id()), *value});
  }
  double xx = 0, xy = 0, yy = 0, first = 0, last = 0;
  double degrees = -1;  // the slope takes one
  bool any = false;
  for (const auto& [identity, repeats] : by_identity) {
    if (repeats.size() < 2) continue;
    Repeat mean;
    for (const Repeat& one : repeats) {
      mean.order += one.order / static_cast<double>(repeats.size());
      mean.value += one.value / static_cast<double>(repeats.size());
    }
    for (const Repeat& one : repeats) {
      const double x = one.order - mean.order, y = one.value - mean.value;
      xx += x * x;
      xy += x * y;
      yy += y * y;
    }
    first = any ? std::min(first, repeats.front().order) : repeats.front().order;
    last = any ? std::max(last, repeats.back().order) : repeats.back().order;
    any = true;
    degrees += static_cast<double>(repeats.size() - 1);
  }
  if (degrees < 1) return std::nullopt;  // one pair shows noise as well
  const double slope = xy / xx;
  const Repeats rest{std::max(0.0, yy - slope * xy), degrees};
  const double deviation = std::sqrt(pooled_variance(rest) / xx), change = slope * (last - first);
  const bool is_clear = std::abs(slope) > deviation * student_quantile(kClear, kPriorDegrees + degrees);
  if (!is_clear || std::abs(change) < kLeastChange) return std::nullopt;
  return std::exp(change);
}

std::string drift_text(const std::vector<Trial>& trials, const std::string& metric, bool maximise) {
  const std::optional<double> drift = drift_of(trials, metric, maximise);
  if (!drift) return "";
  return fmt::format(
      "drift: what was measured again was {:.2g} x as fast at the end as at the beginning; trials compare where they "
      "were measured in turn: run the study on a machine that does nothing else\n",
      *drift);
}

}  // namespace dsat::host
