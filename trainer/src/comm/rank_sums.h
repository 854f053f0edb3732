// Sums over the ranks, cut into rounds in which each rank sends a bounded number of bytes.
//
// A sum has a root, one rank or all of them. Every root gets the same share of a round, so that the ranks add in
// parallel. Ownership: parts share the tensors. Threading: one thread. Units: bytes where it says so. Errors: none.
#ifndef DSAT_TRAINER_COMM_RANK_SUMS_H_
#define DSAT_TRAINER_COMM_RANK_SUMS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "dsat/trainer/comm.h"

namespace dsat::trainer {

// The part of a sum that is exchanged in one round, at an offset in bytes of what a rank sends.
struct SumPart {
  at::Tensor values;
  int root;
  size_t offset;
};

class RankSums {
 public:
  // What a rank sends in a round, at most: `round_bytes` in all, `root_bytes` to one root.
  RankSums(const std::vector<Summand>& summands, size_t round_bytes, size_t root_bytes);

  // The parts of the next round, the same on every rank. Empty: nothing is left.
  std::vector<SumPart> next();

 private:
  // All sums with one root, and how far they have been exchanged.
  struct OfRoot {
    int root;
    std::vector<at::Tensor> tensors;
    size_t tensor = 0;
    int64_t at = 0;  // elements of that tensor
    bool is_done() const { return tensor == tensors.size(); }
  };
  static void take(OfRoot& sums, size_t offset, size_t end, std::vector<SumPart>& parts);

  std::vector<OfRoot> roots_;
  size_t round_bytes_, root_bytes_;
};

// Writes the sum of the ranks' values, sources[r] being rank r's, into `values`, of fp32, fp64 or bf16. It adds element
// by element in the order of the ranks, so that the sum is the same, bit for bit, on every rank and at every ZeRO
// stage. bf16 is added in fp32 and rounded once.
void add_in_order(const std::vector<const void*>& sources, const at::Tensor& values);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_RANK_SUMS_H_
