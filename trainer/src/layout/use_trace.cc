#include "layout/use_trace.h"

#include <utility>

namespace dsat::trainer {

void AccessTrace::begin() {
  predicted_ = std::move(recorded_);
  recorded_.clear();
  is_as_predicted_ = true;
}

void AccessTrace::use(size_t group) {
  if (!recorded_.empty() && recorded_.back() == group) return;
  const size_t at = recorded_.size();
  is_as_predicted_ = is_as_predicted_ && at < predicted_.size() && predicted_[at] == group;
  recorded_.push_back(group);
  fingerprint_ = (fingerprint_ ^ group) * 1099511628211u;
}

AccessTrace::Range AccessTrace::upcoming() const {
  const size_t* const end = predicted_.data() + predicted_.size();
  const bool is_known = is_as_predicted_ && recorded_.size() < predicted_.size();
  return {is_known ? predicted_.data() + recorded_.size() : end, end};
}

std::optional<int64_t> AccessTrace::distance_to(size_t group) const {
  int64_t distance = 0;
  for (const size_t next : upcoming()) {
    if (next == group) return distance;
    distance += sizes_[next];
  }
  return std::nullopt;
}

}  // namespace dsat::trainer
