// The parts that all stages share: the all-gather in buckets, and views of a flat array in the place of a model's
// tensors.
#include "zero/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace dsat::trainer {

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

namespace {

at::Tensor view_of(const ParameterSlot& slot, const at::Tensor& flat, int64_t begin) {
  return flat.narrow(0, slot.begin - begin, slot.size).view(slot.spec.shape);
}

}  // namespace

// set_data, and not a view as the leaf itself: each leaf keeps a version counter of its own, so an update of the flat
// array does not look to autograd like a change of tensors that it has saved for backward.
void make_views(const Tensors& leaves, const GroupSlot& layer, const at::Tensor& flat, int64_t begin) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    leaves[k].set_data(view_of(layer.parameters[k], flat, begin).variable_data());
  }
}

void take_back(const Tensors& leaves, const GroupSlot& layer, const at::Tensor& flat, int64_t begin) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (leaves[k].storage().unsafeGetStorageImpl() == flat.storage().unsafeGetStorageImpl()) continue;
    const ParameterSlot& slot = layer.parameters[k];
    if (leaves[k].sizes() != at::IntArrayRef(slot.spec.shape)) {
      throw Error(fmt::format("parameter {} of shape [{}] was given a tensor of shape [{}]", slot.spec.name,
                              fmt::join(slot.spec.shape, ", "), fmt::join(leaves[k].sizes(), ", ")));
    }
    const at::Tensor view = view_of(slot, flat, begin);
    view.copy_(leaves[k].detach());
    leaves[k].set_data(view.variable_data());
  }
}

void broadcast_elements(Comm& comm, const at::Tensor& flat, int root) {
  if (comm.size() == 1 || flat.numel() == 0) return;
  if (const auto pending = comm.broadcast(flat.view(at::kByte), root)) pending->wait();
}

}  // namespace dsat::trainer
