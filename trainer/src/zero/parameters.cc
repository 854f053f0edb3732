// The parts that all stages share: the all-gather in buckets, and views of a flat array in the place of a model's
// tensors.
#include "zero/parameters.h"

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

// set_data, and not a view as the leaf itself: each leaf keeps a version counter of its own, so an update of the flat
// array does not look to autograd like a change of tensors that it has saved for backward.
void make_views(const Tensors& leaves, const GroupSlot& layer, const at::Tensor& flat, int64_t begin) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    const ParameterSlot& slot = layer.parameters[k];
    leaves[k].set_data(flat.narrow(0, slot.begin - begin, slot.size).view(slot.spec.shape).variable_data());
  }
}

}  // namespace dsat::trainer
