// Collectives between the ranks. The interface is our own, because LibTorch's API changes between versions.
//
// Errors: PeerLost if another rank is gone (a consequence, never the cause), otherwise dsat::Error.
// Threading: one thread at a time calls a group's operations. The order of calls matches the operations of the whole
// group between ranks, and a send with its recv between two ranks. A group from split() has an order of its own.
#ifndef DSAT_TRAINER_COMM_H_
#define DSAT_TRAINER_COMM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace dsat::trainer {

class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A collective in progress. The tensor's memory must stay until wait() has returned.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
};

// A contiguous tensor to sum over the ranks; the root or all ranks get the sum.
struct Summand {
  static constexpr int kAllRanks = -1;
  at::Tensor tensor;
  int root = kAllRanks;
};

class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place, for contiguous tensors. nullptr: nothing to wait for. Sums need fp32 or fp64; broadcasts take any type.
  virtual std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) = 0;
  // Afterwards only the root's tensor is valid.
  virtual std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) = 0;
  virtual std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) = 0;
  virtual void barrier() = 0;

  // Between two ranks of this group. The tensors are contiguous and have the same size and type on both sides.
  virtual std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) = 0;
  virtual std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) = 0;

  // A group of these ranks of this group, in their order. Only these ranks call split(), so this rank must be one of
  // them. The new group's operations are separate from those of all other groups, even of a group of the same ranks.
  virtual std::unique_ptr<Comm> split(const std::vector<int>& ranks) = 0;

  // These operations are complete when they return. They may use memory that the ranks of one host share. parts[r]
  // belongs to rank r; the parts are contiguous and of equal size. Afterwards every rank has all parts.
  virtual void all_gather(const std::vector<at::Tensor>& parts);
  // In place, for fp32, fp64 and, where sums_bfloat16() is true, bf16, which is added in fp32 and rounded once. A rank
  // that is not the root keeps its own values.
  virtual void sum(const std::vector<Summand>& summands);
  virtual bool sums_bfloat16() const { return false; }
};

// Waits for all and empties the list. The first failure is thrown after all have ended.
void wait_all(std::vector<std::unique_ptr<Pending>>& pending);

// Element-wise over ranks; every rank gets the result.
std::vector<double> sum_over_ranks(Comm& comm, const std::vector<double>& values);
// As above, for a few numbers below 2^53.
std::vector<double> max_over_ranks(Comm& comm, const std::vector<double>& values);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_H_
