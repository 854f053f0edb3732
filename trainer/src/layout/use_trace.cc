// Records the groups that a micro step uses and predicts the next step by them.
// A use that differs from the prediction ends it for the rest of the micro step.
#include "layout/use_trace.h"

#include <utility>

namespace dsat::trainer {

void UseTrace::begin() {
  predicted_ = std::move(recorded_);
  recorded_.clear();
  is_as_predicted_ = true;
}

void UseTrace::use(size_t group) {
  if (!recorded_.empty() && recorded_.back() == group) return;
  const size_t at = recorded_.size();
  is_as_predicted_ = is_as_predicted_ && at < predicted_.size() && predicted_[at] == group;
  recorded_.push_back(group);
  fingerprint_ = (fingerprint_ ^ group) * 1099511628211u;
}

UseTrace::Range UseTrace::upcoming() const {
  const size_t* const end = predicted_.data() + predicted_.size();
  const bool is_known = is_as_predicted_ && recorded_.size() < predicted_.size();
  return {is_known ? predicted_.data() + recorded_.size() : end, end};
}

std::optional<int64_t> UseTrace::distance_to(size_t group) const {
  int64_t distance = 0;
  for (const size_t next : upcoming()) {
    if (next == group) return distance;
    distance += sizes_[next];
  }
  return std::nullopt;
}

}  // namespace dsat::trainer
