// Collectives through shared memory, between ranks that one launcher has started. What need not be fast, and what may
// be under way beside other operations, is left to another transport.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/rendezvous.h"
#include "comm/shared_exchange.h"
#include "comm/shared_region.h"

namespace dsat::trainer {
namespace {

// The part of a sum that is shown in one round, at an offset of each rank's slot.
struct Run {
  at::Tensor part;
  int root;
  size_t offset;
};

// The sums that one rank gets, or all do, cut into rounds.
class Stream {
 public:
  explicit Stream(int root) : root_(root) {}
  int root() const { return root_; }
  void add(const at::Tensor& tensor) {
    if (tensor.numel() > 0) tensors_.push_back(tensor);
  }
  bool is_done() const { return tensor_ == tensors_.size(); }

  // As much as fits between `offset` and `end`.
  void take(size_t offset, size_t end, std::vector<Run>& runs) {
    while (!is_done()) {
      const at::Tensor& tensor = tensors_[tensor_];
      const auto fits = static_cast<int64_t>((end - offset) / tensor.element_size());
      const int64_t length = std::min(tensor.numel() - at_, fits);
      if (length == 0) return;
      runs.push_back({tensor.narrow(0, at_, length), root_, offset});
      at_ += length;
      if (at_ == tensor.numel()) {
        ++tensor_;
        at_ = 0;
      }
      offset += (static_cast<size_t>(length) * tensor.element_size() + 63) / 64 * 64;  // lines of a cache
      if (offset >= end) return;
    }
  }

 private:
  int root_;
  std::vector<at::Tensor> tensors_;
  size_t tensor_ = 0;
  int64_t at_ = 0;
};

// A stream for each root, so that in every round each rank has something to add.
std::vector<Stream> streams_of(const std::vector<Summand>& summands) {
  std::vector<Stream> streams;
  for (const Summand& summand : summands) {
    auto found =
        std::find_if(streams.begin(), streams.end(), [&](const Stream& s) { return s.root() == summand.root; });
    if (found == streams.end()) found = streams.insert(streams.end(), Stream(summand.root));
    found->add(summand.tensor);
  }
  return streams;
}

// Element by element in the order of the ranks, so that the sum is the same on every rank and at every stage. Tiles
// stay in the nearest cache.
template <typename T>
void add_in_order(const std::vector<const char*>& sources, T* to, int64_t size) {
  constexpr int64_t kTile = 1024;
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

class SharedComm : public Comm {
 public:
  SharedComm(std::unique_ptr<Comm> other, SharedRegion& region, int place, std::vector<int> members)
      : other_(std::move(other)), region_(region), exchange_(region, place, std::move(members), other_->rank()) {}

  int rank() const override { return other_->rank(); }
  int size() const override { return other_->size(); }
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
    const size_t bytes = parts.front().nbytes();
    const auto data = [&](int rank) { return static_cast<char*>(parts[static_cast<size_t>(rank)].data_ptr()); };
    for (size_t at = 0; at < bytes; at += Exchange::kBytes) {
      const size_t length = std::min(Exchange::kBytes, bytes - at);
      std::memcpy(exchange_.own(), data(rank()) + at, length);
      exchange_.meet();
      for (int other = 0; other < size(); ++other) {
        if (other != rank()) std::memcpy(data(other) + at, exchange_.of(other), length);
      }
    }
  }

  void sum(const std::vector<Summand>& summands) override {
    std::vector<Stream> streams = streams_of(summands);
    for (std::vector<Run> runs = next(streams); !runs.empty(); runs = next(streams)) {
      for (const Run& run : runs) {
        if (run.root != rank()) std::memcpy(exchange_.own() + run.offset, run.part.data_ptr(), run.part.nbytes());
      }
      exchange_.meet();
      for (const Run& run : runs) {
        if (run.root == rank() || run.root == Summand::kAllRanks) add(run);
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
  // What is shown in the next round: of each stream its share of the slot. Empty: nothing is left.
  static std::vector<Run> next(std::vector<Stream>& streams) {
    streams.erase(std::remove_if(streams.begin(), streams.end(), [](const Stream& s) { return s.is_done(); }),
                  streams.end());
    std::vector<Run> runs;
    if (streams.empty()) return runs;
    const size_t share = Exchange::kBytes / streams.size() / 64 * 64;
    for (size_t i = 0; i < streams.size(); ++i) streams[i].take(i * share, (i + 1) * share, runs);
    return runs;
  }

  void add(const Run& run) {
    std::vector<const char*> sources;
    for (int other = 0; other < size(); ++other) sources.push_back(exchange_.of(other) + run.offset);
    sources[static_cast<size_t>(rank())] = static_cast<const char*>(run.part.data_ptr());
    if (run.part.scalar_type() == at::kDouble) {
      add_in_order(sources, run.part.data_ptr<double>(), run.part.numel());
    } else {
      add_in_order(sources, run.part.data_ptr<float>(), run.part.numel());
    }
  }

  std::unique_ptr<Comm> other_;
  SharedRegion& region_;
  Exchange exchange_;
};

}  // namespace

std::unique_ptr<Comm> through_shared_memory(std::unique_ptr<Comm> comm, SharedRegion& region,
                                            std::vector<int> members) {
  if (comm->size() == 1) return comm;
  // The first rank takes a place for all.
  double place = comm->rank() == 0 ? region.take_place(comm->size()) : 0;
  place = sum_over_ranks(*comm, {place})[0];
  if (place == SharedRegion::kNoPlace) return comm;
  return std::make_unique<SharedComm>(std::move(comm), region, static_cast<int>(place), std::move(members));
}

}  // namespace dsat::trainer
