// Collectives through shared memory, between ranks that one launcher has started: blocking sums and all-gathers, cut
// into rounds of one slot (SharedExchange). What need not be fast, and what may be under way beside other operations,
// is left to another transport.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/rank_sums.h"
#include "comm/rendezvous.h"
#include "comm/shared_exchange.h"
#include "comm/shared_region.h"

namespace dsat::trainer {
namespace {

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
  bool sums_bfloat16() const override { return true; }

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
    RankSums sums(summands, SharedExchange::kBytes, SharedExchange::kBytes);
    for (std::vector<SumPart> parts = sums.next(); !parts.empty(); parts = sums.next()) {
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
  void add(const SumPart& part) {
    std::vector<const void*> sources;
    for (int other = 0; other < size(); ++other) sources.push_back(exchange_.of(other) + part.offset);
    sources[static_cast<size_t>(rank())] = part.values.data_ptr();
    add_in_order(sources, part.values);
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
