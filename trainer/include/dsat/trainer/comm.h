// Collectives between the ranks, behind an interface of our own: the transport's API changes between LibTorch versions.
//
// Errors: PeerLost when another rank is gone (a consequence, never the cause), dsat::Error otherwise.
// Threading: one thread at a time calls a group's operations. Those of the whole group are matched between ranks by the
// order of the calls, a send and its recv by their order between the two ranks. Groups that split() makes have an order
// of their own.
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

// A collective under way. The tensor's memory must stay until wait() has returned.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
};

// A contiguous tensor whose sum over the ranks one of them gets, or all do.
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

  // In place, contiguous tensors; nullptr: nothing to wait for. Sums are of fp32 or fp64; broadcasts of any type.
  virtual std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) = 0;
  // Afterwards only the root's tensor is meaningful.
  virtual std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) = 0;
  virtual std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) = 0;
  virtual void barrier() = 0;

  // From one rank to another of this group: contiguous, of the same size and type on both sides.
  virtual std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) = 0;
  virtual std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) = 0;

  // A group of some of this group's ranks, in that order; only they call it, and this rank must be among them. Its
  // operations mix with no other group's, not even with those of a group of the same ranks.
  virtual std::unique_ptr<Comm> split(const std::vector<int>& ranks) = 0;

  // These have ended when they return, and may take a shorter way: through memory that ranks of one host share.
  // parts[r] is rank r's, contiguous, all of one size; afterwards every rank has all.
  virtual void all_gather(const std::vector<at::Tensor>& parts);
  // In place, of fp32 or fp64.
  virtual void sum(const std::vector<Summand>& summands);
};

// Waits for all and forgets them; the first failure is thrown after the rest has ended.
void wait_all(std::vector<std::unique_ptr<Pending>>& pending);

// Element-wise over ranks; every rank gets the result.
std::vector<double> sum_over_ranks(Comm& comm, const std::vector<double>& values);
// As above, of a small count of numbers below 2^53.
std::vector<double> max_over_ranks(Comm& comm, const std::vector<double>& values);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_H_
