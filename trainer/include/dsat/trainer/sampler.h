// Samplers choose the samples of a pass over a data set, and their order.
//
// An order depends only on the seed and the number of the pass, so that all ranks have the same order and a run that
// continues from a checkpoint finds its place. A DataLoader divides the order among the ranks; samplers know no ranks.
// Units: samples. Threading: const methods from one thread at a time. Ownership: a loader shares its sampler.
// Errors: dsat::Error, one line.
#ifndef DSAT_TRAINER_SAMPLER_H_
#define DSAT_TRAINER_SAMPLER_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace dsat::trainer {

class Sampler {
 public:
  virtual ~Sampler() = default;
  // The number of samples in a pass, which is equal in all passes.
  virtual int64_t size() const = 0;
  // The size() indices into the data set for the pass number `epoch`.
  virtual std::vector<int64_t> order(uint64_t seed, int64_t epoch) const = 0;
};

// 0, 1, 2, ... to `size`.
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  int64_t size_;
};

// Each of `size` samples once, in a different order in every pass.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  int64_t size_;
};

// Only the samples of `indices`, each once, in a different order in every pass.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  std::vector<int64_t> indices_;
};

// Draws `size` samples with replacement, sample i with a probability in proportion to weights[i].
class WeightedRandomSampler : public Sampler {
 public:
  // Errors: no weights, a weight that is negative or not finite, a sum of 0.
  WeightedRandomSampler(const std::vector<double>& weights, int64_t size);
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  std::vector<double> sums_;  // cumulative sums of the weights
  int64_t size_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SAMPLER_H_
