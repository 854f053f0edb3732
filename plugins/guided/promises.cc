// Keeps a window of trials, each with the best before it.
#include "guided/promises.h"

#include <algorithm>

namespace dsat {

void Promises::add(double gain, double best) {
  ended_.push_back({gain, best});
  if (ended_.size() > kMost) ended_.pop_front();
}

double Promises::kept(size_t count, double best, double tolerance) const {
  if (ended_.size() < count) return 1;
  const size_t first = ended_.size() - count;
  double promised = tolerance;
  for (size_t i = first; i < ended_.size(); ++i) promised += ended_[i].promised;
  const double gained = tolerance + std::max(0.0, best - ended_[first].best);
  return promised > 0 ? std::min(1.0, gained / promised) : 1;
}

}  // namespace dsat
