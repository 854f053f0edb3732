// Lays groups end to end, and cuts the array into the pieces that ranks own.
// Pieces lie in ascending order, so a range's pieces are found by a binary search for its begin.
#include "layout/layout.h"

#include <algorithm>

namespace dsat::trainer {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Layout::Layout(const std::vector<std::vector<ParameterSpec>>& groups, int world_size,
               const std::set<size_t>& persistent)
    : world_size_(world_size) {
  int64_t id = 0;
  for (const std::vector<ParameterSpec>& specs : groups) {
    GroupSlot group;
    group.begin = size_;
    group.is_persistent = persistent.count(groups_.size()) > 0;
    int64_t at = size_;
    for (const ParameterSpec& spec : specs) {
      group.parameters.push_back({spec, id++, at, spec.numel()});
      at += spec.numel();
    }
    num_params_ += at - size_;
    group.size = round_up(at - size_, world_size);
    size_ += group.size;
    largest_group_ = std::max(largest_group_, group.size);
    groups_.push_back(std::move(group));
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

Partition Partition::by_group(const Layout& layout) {
  Partition partition;
  for (const GroupSlot& group : layout.groups()) {
    const int64_t part = group.size / layout.world_size();
    for (int owner = 0; owner < layout.world_size(); ++owner) {
      partition.pieces_.push_back({owner, group.begin + owner * part, part, partition.shard_size_});
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
