// Keeps a window of trials, each with the best objective up to it.
#include "guided/promises.h"

#include <algorithm>
#include <limits>

namespace dsat {

namespace {

constexpr double kNothingMeasured = std::numeric_limits<double>::lowest();

// A shorter study ends by its limits, or by what the model expects.
constexpr size_t kWindow = 64;

}  // namespace

void Promises::add(double gain, std::optional<double> objective) {
  const double before = ended_.empty() ? kNothingMeasured : ended_.back().best;
  ended_.push_back({gain, std::max(before, objective.value_or(before))});
  if (ended_.size() > kWindow + 1) ended_.pop_front();
}

double Promises::kept(double tolerance) const {
  if (ended_.size() <= kWindow || ended_.back().best == kNothingMeasured) return 1;
  double promised = tolerance;
  for (size_t i = 1; i < ended_.size(); ++i) promised += ended_[i].promised;
  const double gained = tolerance + (ended_.back().best - ended_.front().best);
  return promised > 0 ? std::min(1.0, gained / promised) : 1;
}

}  // namespace dsat
