// Sums of gradients over the ranks, whatever their type.
//
// fp32 is summed in place and asynchronously. Gloo cannot sum 16-bit brain floats: they pass through a small fp32
// staging buffer, chunk by chunk, so the sum is rounded once.
#ifndef DSAT_TRAINER_REDUCER_H_
#define DSAT_TRAINER_REDUCER_H_

#include <memory>
#include <vector>

#include "zero_context.h"

namespace dsat::trainer {

class Reducer {
 public:
  static constexpr int kAllRanks = -1;
  static constexpr int64_t kStagingElements = int64_t{1} << 18;

  explicit Reducer(const ZeroContext& context) : c_(context) {}

  // Takes and gives back the staging buffer (bf16 with several ranks; nothing otherwise).
  void begin_step();
  void end_step() { staging_.reset(); }

  // Starts to sum `tensor` into the copy of rank `root`, or of all. What is under way is added to `pending`.
  void start(const at::Tensor& tensor, int root, std::vector<std::unique_ptr<Pending>>& pending);

 private:
  void staged(const at::Tensor& tensor, int root);

  ZeroContext c_;
  at::Tensor staging_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_REDUCER_H_
