// Collectives over Gloo. All knowledge of c10d is in this file.
//
// Gloo cannot move 16-bit brain floats; broadcasts send the bytes. Every operation is asynchronous and in place, so
// it takes no tensor memory.
#include <ATen/ops/from_blob.h>

#include <chrono>
#include <cstring>
#include <map>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "dsat/error.h"
#include "rendezvous.h"

namespace dsat::trainer {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

// A peer that is gone shows as a broken connection in whatever exception; nothing else fails in a collective.
template <typename Call>
auto as_peer_lost(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw PeerLost(std::string("lost another rank: ") + error.what());
  }
}

// The same bytes without their ownership: Gloo's threads let go of a tensor a little after its work has ended, and
// memory that is freed by another thread's clock would make the peak of a step differ from run to run.
at::Tensor borrow(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBFloat16) {
    return at::from_blob(tensor.data_ptr(), {tensor.numel() * 2}, at::TensorOptions().dtype(at::kByte));
  }
  return at::from_blob(tensor.data_ptr(), {tensor.numel()}, tensor.options());
}

class GlooPending : public Pending {
 public:
  explicit GlooPending(Work work) : work_(std::move(work)) {}
  void wait() override {
    as_peer_lost([&] { return work_->wait(); });
  }

 private:
  Work work_;
};

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using Store = c10::intrusive_ptr<c10d::Store>;

GlooGroup make_group(const Store& store, int rank, int size, bool loopback) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices = {loopback ? c10d::ProcessGroupGloo::createDeviceForInterface("lo")
                               : c10d::ProcessGroupGloo::createDefaultDevice()};
  return as_peer_lost([&] { return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options); });
}

class GlooComm : public Comm {
 public:
  GlooComm(Store store, int rank, int size, bool loopback)
      : store_(std::move(store)),
        group_(make_group(store_, rank, size, loopback)),
        rank_(rank),
        size_(size),
        loopback_(loopback) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors = {borrow(tensor)};
    return start([&] { return group_->allreduce(tensors); });
  }
  std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors = {borrow(tensor)};
    c10d::ReduceOptions options;
    options.rootRank = root;
    return start([&] { return group_->reduce(tensors, options); });
  }
  std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors = {borrow(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return start([&] { return group_->broadcast(tensors, options); });
  }
  void barrier() override {
    as_peer_lost([&] { return group_->barrier()->wait(); });
  }
  std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) override {
    check_peer(peer);
    std::vector<at::Tensor> tensors = {borrow(tensor)};
    return start([&] { return group_->send(tensors, peer, /*tag=*/0); });
  }
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) override {
    check_peer(peer);
    std::vector<at::Tensor> tensors = {borrow(tensor)};
    return start([&] { return group_->recv(tensors, peer, /*tag=*/0); });
  }

  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    const int position = position_in(ranks, rank_, size_);
    // Members of a list have split it equally often, which no other list needs to know.
    const int times = splits_[ranks]++;
    if (ranks.size() == 1) return join({});
    std::string name = "split" + std::to_string(times);
    for (const int r : ranks) name += "." + std::to_string(r);
    return std::make_unique<GlooComm>(c10::make_intrusive<c10d::PrefixStore>(name, store_), position,
                                      static_cast<int>(ranks.size()), loopback_);
  }

 private:
  void check_peer(int peer) const {
    if (peer >= 0 && peer < size_ && peer != rank_) return;
    throw Error("rank " + std::to_string(rank_) + " cannot exchange a tensor with rank " + std::to_string(peer) +
                " in a group of " + std::to_string(size_));
  }

  template <typename Call>
  std::unique_ptr<Pending> start(Call call) {
    return std::make_unique<GlooPending>(as_peer_lost(call));
  }

  Store store_;
  GlooGroup group_;
  int rank_, size_;
  bool loopback_;
  std::map<std::vector<int>, int> splits_;  // how often each list was split off
};

Store open_store(const Rendezvous& r) {
  c10d::TCPStoreOptions options;
  options.port = r.port;
  options.isServer = r.rank == 0;
  options.numWorkers = static_cast<size_t>(r.world_size);
  try {
    return c10::make_intrusive<c10d::TCPStore>(r.address, options);
  } catch (const std::exception& error) {
    // Only the rank that serves can be the cause; the others wait for it in vain.
    if (r.rank != 0) throw PeerLost(std::string("cannot meet rank 0: ") + error.what());
    const std::string where = r.address + ":" + std::to_string(r.port);
    // c10d's own text names every address family that it tried, over several lines.
    if (std::strstr(error.what(), "already in use") != nullptr || std::strstr(error.what(), "EADDRINUSE") != nullptr) {
      throw Error(DSAT_INTERNAL,
                  "cannot listen on " + where + ": Address already in use (EADDRINUSE); set MASTER_PORT");
    }
    const std::string text = error.what();
    throw Error(DSAT_INTERNAL, "cannot meet the other ranks at " + where + ": " + text.substr(0, text.find('\n')));
  }
}

constexpr std::chrono::milliseconds kHearing{3000};

// Where this process has joined the others.
struct Meeting {
  Store store;
  int rank = 0, size = 1;
};

Meeting& meeting() {
  static Meeting* const instance = new Meeting;
  return *instance;
}

// Says that this rank knows the cause. Rank 0, whose process the store is in, waits for the others to say so.
void part(const Meeting& m) {
  const auto key = [](int rank) { return "heard." + std::to_string(rank); };
  m.store->set(key(m.rank), {1});
  if (m.rank != 0) return;
  std::vector<std::string> all;
  for (int rank = 0; rank < m.size; ++rank) all.push_back(key(rank));
  m.store->wait(all, kHearing);
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.compare(0, 4, "127.") == 0;
}

}  // namespace

std::unique_ptr<Comm> join_gloo(const Rendezvous& r) {
  meeting() = {open_store(r), r.rank, r.world_size};
  return std::make_unique<GlooComm>(meeting().store, r.rank, r.world_size, is_loopback(r.address));
}

void tell_cause(const std::string& cause) {
  const Meeting& m = meeting();
  if (!m.store) return;
  try {
    if (m.store->add("causes", 1) == 1) m.store->set("cause", {cause.begin(), cause.end()});
    part(m);
  } catch (const std::exception&) {  // the store has gone with rank 0
  }
}

std::string cause_of_others() {
  const Meeting& m = meeting();
  if (!m.store) return "";
  std::vector<uint8_t> cause;
  try {
    m.store->wait({"cause"}, kHearing);
    cause = m.store->get("cause");
    part(m);
  } catch (const std::exception&) {  // nobody was able to say, or the store has gone with rank 0
  }
  return {cause.begin(), cause.end()};
}

}  // namespace dsat::trainer
