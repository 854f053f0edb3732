// Where every parameter lies in the one flat array of the model, and which rank owns which part of it.
//
// Units: elements. Parameters come in groups, what stage 3 gathers together: in a chain a group is a layer. The flat
// array holds the groups one after the other, each padded to a multiple of the world size, so that it divides evenly
// both as a whole (stages 1 and 2) and group by group (stage 3).
// Threading: immutable after construction. Ownership: values. Errors: none; arguments as documented.
// Source: the partitions of ZeRO (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", 2020).
#ifndef DSAT_TRAINER_LAYOUT_LAYOUT_H_
#define DSAT_TRAINER_LAYOUT_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "layout/parameter.h"

namespace dsat::trainer {

struct ParameterSlot {
  ParameterSpec spec;
  int64_t id = 0;     // counts over all groups
  int64_t begin = 0;  // in the flat array
  int64_t size = 0;
};

struct GroupSlot {
  int64_t begin = 0;
  int64_t size = 0;            // padded
  bool is_persistent = false;  // whole on every rank at stage 3 too
  std::vector<ParameterSlot> parameters;
};

class Layout {
 public:
  // `persistent`: the numbers of the groups that are.
  Layout(const std::vector<std::vector<ParameterSpec>>& groups, int world_size,
         const std::set<size_t>& persistent = {});

  const std::vector<GroupSlot>& groups() const { return groups_; }
  int world_size() const { return world_size_; }
  int64_t num_params() const { return num_params_; }  // without padding
  int64_t size() const { return size_; }              // with padding
  int64_t largest_group() const { return largest_group_; }

 private:
  std::vector<GroupSlot> groups_;
  int world_size_;
  int64_t num_params_ = 0;
  int64_t size_ = 0;
  int64_t largest_group_ = 0;
};

// A run of the flat array that one rank owns.
struct Piece {
  int owner = 0;
  int64_t begin = 0;  // in the flat array
  int64_t size = 0;
  int64_t shard_begin = 0;  // in the owner's shard
};

// Cuts the flat array into one shard a rank. Shards of all ranks have the same size.
class Partition {
 public:
  // Every rank owns everything (stage 0): one piece, owner = `rank`.
  static Partition replicated(const Layout& layout, int rank);
  // Rank r owns the r-th part of the whole array (stages 1 and 2).
  static Partition contiguous(const Layout& layout);
  // Rank r owns the r-th part of each group (stage 3).
  static Partition by_group(const Layout& layout);

  int64_t shard_size() const { return shard_size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }  // ascending, covering the flat array
  // The part of the flat array in [begin, begin + size), piece by piece.
  std::vector<Piece> pieces(int64_t begin, int64_t size) const;

 private:
  std::vector<Piece> pieces_;
  int64_t shard_size_ = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_LAYOUT_H_
