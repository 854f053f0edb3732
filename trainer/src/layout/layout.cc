#include "layout/layout.h"

#include <algorithm>

namespace dsat::trainer {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Layout::Layout(const std::vector<std::vector<ParameterSpec>>& layers, int world_size,
               const std::set<size_t>& persistent, int64_t first_id)
    : world_size_(world_size), first_id_(first_id) {
  int64_t id = first_id;
  for (const std::vector<ParameterSpec>& specs : layers) {
    LayerSlot layer;
    layer.begin = size_;
    layer.is_persistent = persistent.count(layers_.size()) > 0;
    int64_t at = size_;
    for (const ParameterSpec& spec : specs) {
      layer.parameters.push_back({spec, id++, at, spec.numel()});
      at += spec.numel();
    }
    num_params_ += at - size_;
    layer.size = round_up(at - size_, world_size);
    size_ += layer.size;
    largest_layer_ = std::max(largest_layer_, layer.size);
    layers_.push_back(std::move(layer));
  }
}

Partition Partition::replicated(const Layout& layout, int rank) {
  Partition partition;
  partition.shard_size_ = layout.size();
  partition.pieces_.push_back({rank, 0, layout.size(), 0});
  return partition;
}

Partition Partition::contiguous(const Layout& layout) {
  Partition partition;
  partition.shard_size_ = layout.size() / layout.world_size();
  for (int owner = 0; owner < layout.world_size(); ++owner) {
    partition.pieces_.push_back({owner, owner * partition.shard_size_, partition.shard_size_, 0});
  }
  return partition;
}

Partition Partition::by_layer(const Layout& layout) {
  Partition partition;
  for (const LayerSlot& layer : layout.layers()) {
    const int64_t part = layer.size / layout.world_size();
    for (int owner = 0; owner < layout.world_size(); ++owner) {
      partition.pieces_.push_back({owner, layer.begin + owner * part, part, partition.shard_size_});
    }
    partition.shard_size_ += part;
  }
  return partition;
}

std::vector<Piece> Partition::pieces(int64_t begin, int64_t size) const {
  const int64_t end = begin + size;
  std::vector<Piece> found;
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](int64_t at, const Piece& p) { return at < p.begin + p.size; });
  for (; piece != pieces_.end() && piece->begin < end; ++piece) {
    const int64_t from = std::max(begin, piece->begin);
    const int64_t to = std::min(end, piece->begin + piece->size);
    if (from < to) found.push_back({piece->owner, from, to - from, piece->shard_begin + from - piece->begin});
  }
  return found;
}

}  // namespace dsat::trainer
