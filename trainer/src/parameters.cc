#include "parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "initial.h"

namespace dsat::trainer {
namespace {

at::Tensor zeros_of(const ZeroContext& c, int64_t size) {
  return at::zeros({size}, at::TensorOptions().dtype(c.dtype));
}

// parts[r] is rank r's part, all of one size, neighbours in memory. `bucket` elements travel at a time, all ranks
// together. As broadcasts, because Gloo's all-gather copies everything once more.
void all_gather(Comm& comm, const Tensors& parts, int64_t bucket) {
  if (comm.size() == 1) return;
  const int64_t size = parts.front().numel();
  const int64_t chunk = std::max<int64_t>(1, bucket / comm.size());
  std::vector<std::unique_ptr<Pending>> pending;
  for (int64_t at = 0; at < size; at += chunk) {
    const int64_t length = std::min(chunk, size - at);
    for (int root = 0; root < comm.size(); ++root) {
      pending.push_back(comm.broadcast(parts[static_cast<size_t>(root)].narrow(0, at, length), root));
    }
    wait_all(pending);
  }
}

// Views of `flat`, which holds the elements from `begin` on, as trainable leaves. variable_data: each leaf has a
// version counter of its own, so an update of the flat array does not look like a change behind autograd's back.
Tensors leaves_of(const at::Tensor& flat, const LayerSlot& layer, int64_t begin) {
  Tensors leaves;
  for (const ParameterSlot& slot : layer.parameters) {
    leaves.push_back(flat.narrow(0, slot.begin - begin, slot.size).view(slot.spec.shape).variable_data());
    leaves.back().set_requires_grad(true);
  }
  return leaves;
}

class ReplicatedParameters : public Parameters {
 public:
  explicit ReplicatedParameters(const ZeroContext& c) : c_(c), flat_(zeros_of(c, c.layout.size())) {
    const Partition whole = Partition::replicated(c.layout, c.comm.rank());
    with_data(flat_, [&](auto* data) { fill_initial(c.layout, whole, c.comm.rank(), c.seed, data); });
    for (const LayerSlot& layer : c.layout.layers()) layers_.push_back(leaves_of(flat_, layer, 0));
  }

  bool partitioned() const override { return false; }
  at::Tensor shard() const override { return c_.settings.stage == 0 ? flat_ : part(c_.comm.rank()); }
  void publish() override {
    if (c_.settings.stage == 0) return;  // every rank has made the same update
    Tensors parts;
    for (int rank = 0; rank < c_.comm.size(); ++rank) parts.push_back(part(rank));
    all_gather(c_.comm, parts, c_.settings.allgather_bucket);
  }

 private:
  at::Tensor part(int rank) const {
    const int64_t size = c_.partition.shard_size();
    return flat_.narrow(0, rank * size, size);
  }

  ZeroContext c_;
  at::Tensor flat_;
};

// Each layer's leaves are views of one storage that has no memory of its own. Gathering lends it the arena; autograd
// keeps views of the storage for backward, and finds the data there once the layer is gathered again.
class PartitionedParameters : public Parameters {
 public:
  explicit PartitionedParameters(const ZeroContext& c) : c_(c), shard_(zeros_of(c, c.partition.shard_size())) {
    with_data(shard_, [&](auto* data) { fill_initial(c.layout, c.partition, c.comm.rank(), c.seed, data); });
    int64_t shard_begin = 0;
    for (const LayerSlot& layer : c.layout.layers()) {
      const at::Tensor full = without_memory(layer.size);
      storages_.push_back(full.storage());
      layers_.push_back(leaves_of(full, layer, layer.begin));
      shard_begins_.push_back(shard_begin);
      shard_begin += layer.size / c.comm.size();
    }
  }

  bool partitioned() const override { return true; }
  at::Tensor shard() const override { return shard_; }

  void begin_step() override { arena_ = at::empty({c_.layout.largest_layer()}, at::TensorOptions().dtype(c_.dtype)); }
  void end_step() override { arena_.reset(); }

  void gather(size_t layer) override {
    if (gathered_ != kNone) throw Error(DSAT_INTERNAL, "two layers are gathered at once");
    const int64_t part = c_.layout.layers()[layer].size / c_.comm.size();
    Tensors parts;
    for (int rank = 0; rank < c_.comm.size(); ++rank) parts.push_back(arena_.narrow(0, rank * part, part));
    std::memcpy(parts[static_cast<size_t>(c_.comm.rank())].data_ptr(),
                shard_.narrow(0, shard_begins_[layer], part).data_ptr(),
                static_cast<size_t>(part) * shard_.element_size());
    all_gather(c_.comm, parts, c_.settings.allgather_bucket);
    lend(layer, arena_.data_ptr());
    gathered_ = layer;
  }
  void release(size_t layer) override {
    lend(layer, nullptr);
    gathered_ = kNone;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  at::Tensor without_memory(int64_t size) const {
    at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(c_.dtype));
    const size_t bytes = static_cast<size_t>(size) * tensor.element_size();
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, c10::Device(c10::kCPU)),
                         /*allocator=*/nullptr, /*resizable=*/false);
    return tensor.set_(std::move(storage), 0, {size}, {1});
  }
  void lend(size_t layer, void* data) {
    storages_[layer].unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(data, c10::Device(c10::kCPU)));
  }

  ZeroContext c_;
  at::Tensor shard_;
  at::Tensor arena_;
  std::vector<c10::Storage> storages_;
  std::vector<int64_t> shard_begins_;
  size_t gathered_ = kNone;
};

}  // namespace

std::unique_ptr<Parameters> make_parameters(const ZeroContext& context) {
  if (context.settings.stage == 3) return std::make_unique<PartitionedParameters>(context);
  return std::make_unique<ReplicatedParameters>(context);
}

}  // namespace dsat::trainer
