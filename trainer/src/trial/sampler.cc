// Draws orders by position: a generator of its own for each pass, so that nothing else moves them.
// Weighted draws look a uniform number up in the sums of the weights.
#include "dsat/trainer/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "dsat/error.h"
#include "dsat/random.h"

namespace dsat::trainer {
namespace {

void shuffle(std::vector<int64_t>& order, uint64_t seed, int64_t epoch) {
  Random random(seed, static_cast<uint64_t>(epoch));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.uniform_below(i)]);
}

}  // namespace

std::vector<int64_t> SequentialSampler::order(uint64_t /*seed*/, int64_t /*epoch*/) const {
  std::vector<int64_t> order(static_cast<size_t>(size_));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

std::vector<int64_t> RandomSampler::order(uint64_t seed, int64_t epoch) const {
  std::vector<int64_t> order = SequentialSampler(size_).order(seed, epoch);
  shuffle(order, seed, epoch);
  return order;
}

std::vector<int64_t> SubsetRandomSampler::order(uint64_t seed, int64_t epoch) const {
  std::vector<int64_t> order = indices_;
  shuffle(order, seed, epoch);
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(const std::vector<double>& weights, int64_t size) : size_(size) {
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      throw Error(fmt::format("WeightedRandomSampler: a weight is {}; expected numbers of 0 or more", weight));
    }
    sums_.push_back(sum += weight);
  }
  if (!(sum > 0)) throw Error("WeightedRandomSampler: the weights have no sum above 0: give one above 0");
}

std::vector<int64_t> WeightedRandomSampler::order(uint64_t seed, int64_t epoch) const {
  Random random(seed, static_cast<uint64_t>(epoch));
  // The last sample that can be drawn. One of weight 0 has the sum of the one before it.
  const auto last = std::lower_bound(sums_.begin(), sums_.end(), sums_.back());
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size_; ++i) {
    const auto at = std::upper_bound(sums_.begin(), last, random.uniform() * sums_.back());
    order.push_back(at - sums_.begin());
  }
  return order;
}

}  // namespace dsat::trainer
