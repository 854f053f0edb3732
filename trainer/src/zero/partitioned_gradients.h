// Stages 2 and 3: gradients pass through buckets, and each rank keeps the sum of its own shard only.
//
// A bucket is a run of whole groups of the flat array, of at most B = min(padded P, max(reduce_bucket_size, the largest
// group)) elements. A step holds memory for one, with overlap_comm for two: one is reduced while the other is filled.
// More is taken, for as long as it is needed, where gradients arrive in another order than the flat array's, or where
// an unused parameter holds back its bucket. Without contiguous_gradients nothing is held: a bucket's memory, of its
// own size, is taken when its first gradient arrives and given back when it has been reduced.
// Threading: the compute thread, on which backward runs; the communication thread only sums a bucket, between start and
// wait. Ownership: borrows the context; `group_done` is called within backward. Errors: PeerLost.
#ifndef DSAT_TRAINER_ZERO_PARTITIONED_GRADIENTS_H_
#define DSAT_TRAINER_ZERO_PARTITIONED_GRADIENTS_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "autograd/gradient_hooks.h"
#include "zero/gradients.h"
#include "zero/parameters.h"
#include "zero/reducer.h"
#include "zero/zero_context.h"

namespace dsat::trainer {

class PartitionedGradients : public Gradients {
 public:
  PartitionedGradients(const ZeroContext& context, Parameters& parameters, std::function<void(size_t)> group_done);

  void begin_step() override;
  void begin_backward(bool is_last) override;
  void end_backward() override;
  void abandon_backward() override { hooks_.end_backward(); }
  at::Tensor shard() const override { return shard_; }
  void end_step() override;

 private:
  struct Bucket {
    int64_t begin = 0, size = 0;  // elements of the flat array
    int parameters = 0;
    int missing = 0;                   // parameters whose gradient has not arrived in this backward
    at::Tensor memory;                 // from its first gradient until its sum is kept
    std::unique_ptr<Pending> pending;  // while it is being reduced
  };

  void cut_into_buckets();
  at::Tensor take_memory(int64_t size);
  void give_zeros(Bucket& bucket);
  void before_accumulation(GradientEntry& entry);
  void after_accumulation(GradientEntry& entry);
  void start_reduction(Bucket& bucket);
  void finish_oldest();
  std::vector<double> late_buckets();
  size_t held_buckets() const { return c_.settings.overlap_comm ? 2 : 1; }

  ZeroContext c_;
  Reducer reducer_;
  std::function<void(size_t)> group_done_;
  at::Tensor shard_;
  GradientHooks hooks_;
  std::vector<size_t> bucket_of_group_;
  std::vector<int> missing_in_group_;
  std::vector<Bucket> buckets_;          // in the order of backward
  std::deque<Bucket*> under_way_;        // being reduced, in that order
  std::vector<at::Tensor> free_memory_;  // of bucket_size_ elements each, which the step holds
  int64_t bucket_size_ = 0;
  size_t next_bucket_ = 0;  // the first that is not being reduced
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_PARTITIONED_GRADIENTS_H_
