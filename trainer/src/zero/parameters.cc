// Parameters of stages 0 to 2: one flat array with all of them on every rank, whose shard the optimizer updates in
// place. Also what all stages share: the all-gather in buckets, and views of a flat array in the place of a model's
// tensors.
#include "zero/parameters.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "comm/comm_thread.h"
#include "zero/gathered_parameters.h"

namespace dsat::trainer {
namespace {

// The flat array has all groups one after the other; at stage 0 all of it is every rank's own shard.
class ReplicatedParameters : public Parameters {
 public:
  ReplicatedParameters(const ZeroContext& c, std::vector<Tensors> leaves)
      : Parameters(std::move(leaves)), c_(c), flat_(at::zeros({c.layout.size()}, c.options())) {}

  void bind() override {
    for (size_t i = 0; i < leaves_.size(); ++i) make_views(leaves_[i], c_.layout.groups()[i], flat_, 0);
  }
  at::Tensor shard() const override { return c_.settings.stage == 0 ? flat_ : part(c_.comm.rank()); }
  void publish() override {
    if (c_.settings.stage == 0) return;  // every rank has made the same update
    Tensors parts;
    for (int rank = 0; rank < c_.comm.size(); ++rank) parts.push_back(part(rank));
    c_.comm_thread.run("the gathering of updated parameters", [&](Comm& comm) {
      all_gather(comm, parts, c_.settings.allgather_bucket, !c_.settings.allgather_partitions);
    });
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

}  // namespace

std::unique_ptr<Parameters> make_parameters(const ZeroContext& context, std::vector<Tensors> leaves) {
  if (context.settings.stage == 3) return std::make_unique<GatheredParameters>(context, std::move(leaves));
  return std::make_unique<ReplicatedParameters>(context, std::move(leaves));
}

void all_gather(Comm& comm, const Tensors& parts, int64_t bucket, bool one_by_one) {
  if (comm.size() == 1) return;
  const int64_t size = parts.front().numel();
  // A bucket counts what all ranks send together, as DeepSpeed's allgather_bucket_size does.
  const int64_t chunk = std::max<int64_t>(1, bucket / comm.size());
  for (int64_t at = 0; at < size; at += chunk) {
    Tensors pieces;
    for (const at::Tensor& part : parts) pieces.push_back(part.narrow(0, at, std::min(chunk, size - at)));
    if (one_by_one) {
      for (int root = 0; root < comm.size(); ++root) comm.broadcast(pieces[static_cast<size_t>(root)], root)->wait();
    } else {
      comm.all_gather(pieces);
    }
  }
}

// set_data, and not a view as the leaf itself: each leaf keeps a version counter of its own, so an update of the flat
// array does not look to autograd like a change of tensors that it has saved for backward.
void make_views(const Tensors& leaves, const GroupSlot& layer, const at::Tensor& flat, int64_t begin) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    const ParameterSlot& slot = layer.parameters[k];
    leaves[k].set_data(flat.narrow(0, slot.begin - begin, slot.size).view(slot.spec.shape).variable_data());
  }
}

}  // namespace dsat::trainer
