// Collectives over a process group of c10d (LibTorch's collective library), whatever its transport.
//
// Only comm_gloo.cc and comm_nccl.cc include this: all knowledge of c10d is in these three files. Threading and errors:
// as Comm (dsat/trainer/comm.h).
#ifndef DSAT_TRAINER_COMM_COMM_C10D_H_
#define DSAT_TRAINER_COMM_COMM_C10D_H_

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "comm/rendezvous.h"
#include "dsat/error.h"

namespace dsat::trainer {

using Store = c10::intrusive_ptr<c10d::Store>;

// The store at which this process has joined the others; join_gloo() opens it.
const Store& rendezvous_store();

// What a person can use of the text of a transport's exception: its first line, without the position in the transport's
// source that stands before it in brackets.
inline std::string reason_in(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const size_t bracket = line.empty() || line[0] != '[' ? std::string::npos : line.find("] ");
  return bracket == std::string::npos ? line : line.substr(bracket + 2);
}

// Runs a call of c10d and gives its exceptions our types. A peer that is gone shows as a broken connection, in an
// exception of any type. The other causes are a device without memory for the collective, and two ranks on one device.
template <typename Call>
auto as_peer_lost(Call call) {
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    for (const char* const own_fault : {"out of memory", "Duplicate GPU"}) {
      const size_t at = text.find(own_fault);
      if (at == std::string::npos) continue;
      const size_t begin = text.rfind('\n', at) + 1;
      throw Error(DSAT_INTERNAL, fmt::format("NCCL: {}", text.substr(begin, text.find('\n', at) - begin)));
    }
    throw PeerLost(fmt::format("lost another rank: {}", reason_in(text)));
  }
}

class C10dPending : public Pending {
 public:
  explicit C10dPending(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait() override {
    as_peer_lost([&] { return work_->wait(); });
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

// `Transport` names a Group of c10d and has three functions: make_group(store, rank, size), borrow(tensor), which gives
// the tensor's memory in the form that the group takes, and let_go(group), which ends the group.
template <typename Transport>
class C10dComm : public Comm {
 public:
  C10dComm(Transport transport, Store store, int rank, int size)
      : transport_(std::move(transport)),
        store_(std::move(store)),
        group_(as_peer_lost([&] { return transport_.make_group(store_, rank, size); })),
        rank_(rank),
        size_(size) {}

  ~C10dComm() override { transport_.let_go(std::move(group_)); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors = {transport_.borrow(tensor)};
    return start([&] { return group_->allreduce(tensors); });
  }
  std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors = {transport_.borrow(tensor)};
    c10d::ReduceOptions options;
    options.rootRank = root;
    return start([&] { return group_->reduce(tensors, options); });
  }
  std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors = {transport_.borrow(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return start([&] { return group_->broadcast(tensors, options); });
  }
  void barrier() override {
    as_peer_lost([&] { return group_->barrier()->wait(); });
  }
  std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) override {
    check_peer(peer);
    std::vector<at::Tensor> tensors = {transport_.borrow(tensor)};
    return start([&] { return group_->send(tensors, peer, /*tag=*/0); });
  }
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) override {
    check_peer(peer);
    std::vector<at::Tensor> tensors = {transport_.borrow(tensor)};
    return start([&] { return group_->recv(tensors, peer, /*tag=*/0); });
  }

  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override { return split_as<C10dComm>(ranks); }

 protected:
  // `Part`: the class of the new group.
  template <typename Part>
  std::unique_ptr<Comm> split_as(const std::vector<int>& ranks) {
    const int position = position_in(ranks, rank_, size_);
    // The name in the store must be the same on all members and new for each split. The count does that: only the
    // members of a list call split() with it, and all of them equally often.
    const int times = splits_[ranks]++;
    if (ranks.size() == 1) return single_rank_comm();
    const std::string name = fmt::format("split{}.{}", times, fmt::join(ranks, "."));
    return std::make_unique<Part>(transport_, c10::make_intrusive<c10d::PrefixStore>(name, store_), position,
                                  static_cast<int>(ranks.size()));
  }

 private:
  void check_peer(int peer) const {
    if (peer >= 0 && peer < size_ && peer != rank_) return;
    throw Error(fmt::format("rank {} cannot exchange a tensor with rank {} in a group of {}", rank_, peer, size_));
  }

  template <typename Call>
  std::unique_ptr<Pending> start(Call call) {
    return std::make_unique<C10dPending>(as_peer_lost(call));
  }

  Transport transport_;
  Store store_;
  c10::intrusive_ptr<typename Transport::Group> group_;
  int rank_, size_;
  std::map<std::vector<int>, int> splits_;  // how often each list was split off
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_COMM_C10D_H_
