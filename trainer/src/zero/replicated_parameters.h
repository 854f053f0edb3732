// Stages 0 to 2: every rank holds all parameters in one flat array, and the optimizer updates this rank's shard of it
// in place.
//
// Threading: the compute thread; publish() is collective. Ownership: borrows the context; the model's tensors become
// views of the array. Errors: PeerLost; c10::OutOfMemoryError where memory is taken.
#ifndef DSAT_TRAINER_ZERO_REPLICATED_PARAMETERS_H_
#define DSAT_TRAINER_ZERO_REPLICATED_PARAMETERS_H_

#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "comm/comm_thread.h"
#include "zero/parameters.h"

namespace dsat::trainer {

// The flat array has all groups one after the other; at stage 0 all of it is every rank's own shard.
class ReplicatedParameters final : public Parameters {
 public:
  ReplicatedParameters(const ZeroContext& c, std::vector<Tensors> leaves)
      : Parameters(std::move(leaves)), c_(c), flat_(at::zeros({c.layout.size()}, c.options())) {}

  void bind(size_t id) override { make_views(leaves_[id], c_.layout.groups()[id], flat_, 0); }
  at::Tensor shard() const override { return c_.settings.stage == 0 ? flat_ : part(c_.comm.rank()); }
  void publish() override {
    if (c_.settings.stage == 0) return;  // every rank has made the same update
    Tensors parts;
    for (int rank = 0; rank < c_.comm.size(); ++rank) parts.push_back(part(rank));
    c_.comm_thread.run("the gathering of updated parameters", [&](Comm& comm) {
      all_gather(comm, parts, c_.settings.allgather_bucket, !c_.settings.allgather_partitions);
    });
  }
  void hold(size_t) override {}
  void take(size_t id) override {
    const GroupSlot& layer = c_.layout.groups()[id];
    take_back(leaves_[id], layer, flat_, 0);
    c_.comm_thread.run("the exchange of edited parameters",
                       [&](Comm& comm) { broadcast_elements(comm, flat_.narrow(0, layer.begin, layer.size), 0); });
  }

 private:
  // The contiguous partition of stages 1 and 2.
  at::Tensor part(int rank) const {
    const int64_t size = c_.partition.shard_size();
    return flat_.narrow(0, rank * size, size);
  }

  ZeroContext c_;
  at::Tensor flat_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_REPLICATED_PARAMETERS_H_
