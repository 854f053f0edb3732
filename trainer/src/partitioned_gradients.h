// Stages 2 and 3: gradients pass through a bucket, and each rank keeps the sum of its own shard only.
//
// A bucket is filled from its end: backward delivers the gradients of a layer from the last to the first, so gradients
// that are neighbours in the flat array become neighbours in the bucket and travel as one run. A full bucket is reduced
// to the owners. With overlap_comm there are two, and one is reduced while the other is filled.
// Bucket size in elements: min(padded P, max(reduce_bucket_size, the largest layer)).
#ifndef DSAT_TRAINER_PARTITIONED_GRADIENTS_H_
#define DSAT_TRAINER_PARTITIONED_GRADIENTS_H_

#include <functional>
#include <memory>
#include <vector>

#include "gradients.h"
#include "reducer.h"

namespace torch::autograd {
struct Node;
}

namespace dsat::trainer {

class PartitionedGradients : public Gradients {
 public:
  PartitionedGradients(const ZeroContext& context, Parameters& parameters, std::function<void(size_t)> layer_done);

  void begin_step() override;
  void after_micro_step(bool is_last) override;
  at::Tensor shard() const override { return shard_; }
  void end_step() override;

 private:
  struct Entry {
    size_t layer;
    const ParameterSlot* slot;
    at::Tensor leaf;
    std::shared_ptr<torch::autograd::Node> accumulator;  // autograd itself holds it only weakly
  };
  // A run of gradients that lies at `at` in the bucket and from `begin` on in the flat array.
  struct Run {
    int64_t at, begin, size;
  };
  struct Bucket {
    at::Tensor memory;
    int64_t free = 0;  // elements, at the front
    std::vector<Run> runs;
    std::vector<std::unique_ptr<Pending>> pending;
  };

  void watch(size_t entry);
  void place(size_t entry);    // before autograd accumulates it
  void arrived(size_t entry);  // after
  void flush();
  void finish(Bucket& bucket);

  ZeroContext c_;
  Reducer reducer_;
  std::function<void(size_t)> layer_done_;
  at::Tensor shard_;
  std::vector<Entry> entries_;
  std::vector<size_t> missing_;  // per layer: gradients that have not arrived in this backward
  std::vector<Bucket> buckets_;
  size_t filling_ = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PARTITIONED_GRADIENTS_H_
