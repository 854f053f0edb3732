// Lists the legal divisors of a fixed global batch. If the global batch is free, all integers between the bounds are
// legal, and no list is needed.
#include "search/micro_batches.h"

#include <algorithm>
#include <cmath>

namespace dsat::search {
namespace {

// No device holds more samples. The limit keeps sums and doublings of ranks from overflow.
constexpr int64_t kLargest = 1'000'000'000;

std::vector<int64_t> legal_divisors(int64_t number, const config::Space& space) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    for (const int64_t candidate : {d, number / d}) {
      if (space.allows_micro_batch(candidate)) divisors.push_back(candidate);
    }
  }
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  return divisors;
}

}  // namespace

MicroBatches::MicroBatches(const config::Space& space) : first_(std::max<int64_t>(1, space.min_micro_batch)) {
  if (space.micro_batch_divides) {
    divisors_ = legal_divisors(*space.micro_batch_divides, space);
    count_ = static_cast<int64_t>(divisors_.size());
  } else {
    count_ = std::max<int64_t>(0, space.max_micro_batch.value_or(kLargest) - first_ + 1);
  }
}

int64_t MicroBatches::rank_at_or_below(double micro_batch) const {
  if (!(micro_batch >= 1)) return -1;
  const int64_t limit = static_cast<int64_t>(std::min(std::floor(micro_batch), static_cast<double>(kLargest)));
  if (divisors_.empty()) return std::max<int64_t>(-1, std::min(limit - first_, count_ - 1));
  return std::upper_bound(divisors_.begin(), divisors_.end(), limit) - divisors_.begin() - 1;
}

}  // namespace dsat::search
