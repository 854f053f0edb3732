// Collectives through shared memory, between ranks that one launcher has started: blocking sums and all-gathers, cut
// into rounds of one slot (SharedExchange). What need not be fast, and what may be under way beside other operations,
// is left to another transport.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/rendezvous.h"
#include "comm/shared_exchange.h"
#include "comm/shared_region.h"

namespace dsat::trainer {
namespace {

// The part of a sum that is exchanged in one round, at an offset in bytes of each rank's slot.
struct SumPart {
  at::Tensor values;
  int root;
  size_t offset;
};

// All sums with one root (a rank, or all ranks), and how far they have been exchanged.
class RootSums {
 public:
  explicit RootSums(int root) : root_(root) {}
  int root() const { return root_; }
  void add(const at::Tensor& tensor) {
    if (tensor.numel() > 0) tensors_.push_back(tensor);
  }
  bool is_done() const { return tensor_ == tensors_.size(); }

  // Adds the next parts to `parts`: as much as fits between the bytes `offset` and `end` of a slot.
  void take(size_t offset, size_t end, std::vector<SumPart>& parts) {
    while (!is_done()) {
      const at::Tensor& tensor = tensors_[tensor_];
      const auto fits = static_cast<int64_t>((end - offset) / tensor.element_size());
      const int64_t length = std::min(tensor.numel() - at_, fits);
      if (length == 0) return;
      parts.push_back({tensor.narrow(0, at_, length), root_, offset});
      at_ += length;
      if (at_ == tensor.numel()) {
        ++tensor_;
        at_ = 0;
      }
      offset += (static_cast<size_t>(length) * tensor.element_size() + 63) / 64 * 64;  // whole cache lines
      if (offset >= end) return;
    }
  }

 private:
  int root_;
  std::vector<at::Tensor> tensors_;
  size_t tensor_ = 0;
  int64_t at_ = 0;
};

// Sums by root: each gets a share of every round, so that all ranks add in parallel instead of one after the other.
std::vector<RootSums> sums_by_root(const std::vector<Summand>& summands) {
  std::vector<RootSums> sums;
  for (const Summand& summand : summands) {
    auto found = std::find_if(sums.begin(), sums.end(), [&](const RootSums& s) { return s.root() == summand.root; });
    if (found == sums.end()) found = sums.insert(sums.end(), RootSums(summand.root));
    found->add(summand.tensor);
  }
  return sums;
}

// Adds element by element in the order of the ranks, so that the sum is the same, bit for bit, on every rank and at
// every ZeRO stage. A tile stays in the nearest cache while all ranks' parts are added to it.
template <typename T>
void add_in_order(const std::vector<const char*>& sources, T* to, int64_t size) {
  constexpr int64_t kTile = 1024;  // elements
  T sum[kTile];
  for (int64_t at = 0; at < size; at += kTile) {
    const int64_t length = std::min(kTile, size - at);
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      const T* const from = reinterpret_cast<const T*>(sources[rank]) + at;
      for (int64_t i = 0; i < length; ++i) sum[i] = rank == 0 ? from[i] : sum[i] + from[i];
    }
    std::memcpy(to + at, sum, static_cast<size_t>(length) * sizeof(T));
  }
}

class SharedMemoryComm : public Comm {
 public:
  SharedMemoryComm(std::unique_ptr<Comm> other, SharedRegion& region, int place, std::vector<int> members)
      : other_(std::move(other)), region_(region), exchange_(region, place, std::move(members), other_->rank()) {}

  int rank() const override { return other_->rank(); }
  int size() const override { return other_->size(); }
  // What may run beside other operations goes to the other transport: a meeting needs all operations in one order.
  std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) override { return other_->all_reduce_sum(tensor); }
  std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) override {
    return other_->reduce_sum(tensor, root);
  }
  std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) override {
    return other_->broadcast(tensor, root);
  }
  std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) override { return other_->send(tensor, peer); }
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) override { return other_->recv(tensor, peer); }

  void barrier() override { exchange_.meet(); }

  void all_gather(const std::vector<at::Tensor>& parts) override {
    // A rank's part lies in its own tensor already; only the others' are copied out of their slots.
    const size_t bytes = parts.front().nbytes();
    const auto data = [&](int rank) { return static_cast<char*>(parts[static_cast<size_t>(rank)].data_ptr()); };
    for (size_t at = 0; at < bytes; at += SharedExchange::kBytes) {
      const size_t length = std::min(SharedExchange::kBytes, bytes - at);
      std::memcpy(exchange_.own(), data(rank()) + at, length);
      exchange_.meet();
      for (int other = 0; other < size(); ++other) {
        if (other != rank()) std::memcpy(data(other) + at, exchange_.of(other), length);
      }
    }
  }

  void sum(const std::vector<Summand>& summands) override {
    std::vector<RootSums> sums = sums_by_root(summands);
    for (std::vector<SumPart> parts = next(sums); !parts.empty(); parts = next(sums)) {
      for (const SumPart& part : parts) {
        if (part.root == rank()) continue;  // adds its own values from where they are
        std::memcpy(exchange_.own() + part.offset, part.values.data_ptr(), part.values.nbytes());
      }
      exchange_.meet();
      // Every root adds what the others have written for it; the slots stay as they are until the next meeting.
      for (const SumPart& part : parts) {
        if (part.root == rank() || part.root == Summand::kAllRanks) add(part);
      }
    }
  }

  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    std::vector<int> members;
    auto part = other_->split(ranks);
    for (const int rank : ranks) members.push_back(exchange_.members()[static_cast<size_t>(rank)]);
    return through_shared_memory(std::move(part), region_, std::move(members));
  }

 private:
  // What the next round exchanges: every root with sums left gets the same share of the slot. Empty: nothing is left.
  static std::vector<SumPart> next(std::vector<RootSums>& sums) {
    sums.erase(std::remove_if(sums.begin(), sums.end(), [](const RootSums& s) { return s.is_done(); }), sums.end());
    std::vector<SumPart> parts;
    if (sums.empty()) return parts;
    const size_t share = SharedExchange::kBytes / sums.size() / 64 * 64;
    for (size_t i = 0; i < sums.size(); ++i) sums[i].take(i * share, (i + 1) * share, parts);
    return parts;
  }

  void add(const SumPart& part) {
    std::vector<const char*> sources;
    for (int other = 0; other < size(); ++other) sources.push_back(exchange_.of(other) + part.offset);
    sources[static_cast<size_t>(rank())] = static_cast<const char*>(part.values.data_ptr());
    if (part.values.scalar_type() == at::kDouble) {
      add_in_order(sources, part.values.data_ptr<double>(), part.values.numel());
    } else {
      add_in_order(sources, part.values.data_ptr<float>(), part.values.numel());
    }
  }

  std::unique_ptr<Comm> other_;
  SharedRegion& region_;
  SharedExchange exchange_;
};

}  // namespace

std::unique_ptr<Comm> through_shared_memory(std::unique_ptr<Comm> comm, SharedRegion& region,
                                            std::vector<int> members) {
  if (comm->size() == 1) return comm;
  // The first rank takes a place for all; the others learn it from a sum to which they add 0.
  double place = comm->rank() == 0 ? region.take_place(comm->size()) : 0;
  place = sum_over_ranks(*comm, {place})[0];
  if (place == SharedRegion::kNoPlace) return comm;
  return std::make_unique<SharedMemoryComm>(std::move(comm), region, static_cast<int>(place), std::move(members));
}

}  // namespace dsat::trainer
