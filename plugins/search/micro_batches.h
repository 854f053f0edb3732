// The micro batches that a space allows, numbered by ranks 0, 1, 2, ... Searches use ranks, so that one code searches a
// space of divisors (a fixed global batch) and a space of all integers.
// Threading: plain values. Units: samples. Errors: none; an impossible space is empty.
#ifndef DSAT_PLUGINS_SEARCH_MICRO_BATCHES_H_
#define DSAT_PLUGINS_SEARCH_MICRO_BATCHES_H_

#include <cstdint>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::search {

class MicroBatches {
 public:
  explicit MicroBatches(const config::Space& space);

  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  int64_t smallest() const { return at(0); }

  // The micro batch of a rank below count().
  int64_t at(int64_t rank) const { return divisors_.empty() ? first_ + rank : divisors_[static_cast<size_t>(rank)]; }

  // The rank of the largest legal micro batch of at most `micro_batch`; -1: none.
  int64_t rank_at_or_below(double micro_batch) const;

 private:
  int64_t first_ = 1;
  int64_t count_ = 0;
  std::vector<int64_t> divisors_;  // empty: all integers from first_
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_MICRO_BATCHES_H_
