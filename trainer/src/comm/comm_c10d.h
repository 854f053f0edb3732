// Collectives over a group of c10d, whatever its transport. Only comm_gloo.cc and comm_nccl.cc include this: all
// knowledge of c10d is in these three files.
#ifndef DSAT_TRAINER_COMM_COMM_C10D_H_
#define DSAT_TRAINER_COMM_COMM_C10D_H_

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

// Where this process has joined the others.
const Store& meeting_store();

// A peer that is gone shows as a broken connection in whatever exception. What else fails in a collective is a device
// that has no memory left for it, or two ranks on one.
template <typename Call>
auto as_peer_lost(Call call) {
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    for (const char* const own : {"out of memory", "Duplicate GPU"}) {
      const size_t at = text.find(own);
      if (at == std::string::npos) continue;
      const size_t begin = text.rfind('\n', at) + 1;
      throw Error(DSAT_INTERNAL, "NCCL: " + text.substr(begin, text.find('\n', at) - begin));
    }
    throw PeerLost("lost another rank: " + text);
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

// `Transport` has a Group of c10d, make_group(store, rank, size), borrow(tensor): the same memory as the group takes
// it, and let_go(group), which ends it.
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

  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    const int position = position_in(ranks, rank_, size_);
    // Members of a list have split it equally often, which no other list needs to know.
    const int times = splits_[ranks]++;
    if (ranks.size() == 1) return alone();
    std::string name = "split" + std::to_string(times);
    for (const int r : ranks) name += "." + std::to_string(r);
    return std::make_unique<C10dComm>(transport_, c10::make_intrusive<c10d::PrefixStore>(name, store_), position,
                                      static_cast<int>(ranks.size()));
  }

 private:
  void check_peer(int peer) const {
    if (peer >= 0 && peer < size_ && peer != rank_) return;
    throw Error("rank " + std::to_string(rank_) + " cannot exchange a tensor with rank " + std::to_string(peer) +
                " in a group of " + std::to_string(size_));
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
