// Collectives over Gloo. All knowledge of c10d is in this file.
//
// Gloo cannot move 16-bit brain floats; broadcasts send the bytes. Every operation is asynchronous and in place, so
// it takes no tensor memory.
#include <ATen/ops/from_blob.h>

#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm.h"
#include "dsat/error.h"

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

class GlooComm : public Comm {
 public:
  GlooComm(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, int rank, int size)
      : group_(std::move(group)), rank_(rank), size_(size) {}

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

 private:
  template <typename Call>
  std::unique_ptr<Pending> start(Call call) {
    return std::make_unique<GlooPending>(as_peer_lost(call));
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int rank_, size_;
};

c10::intrusive_ptr<c10d::Store> open_store(const Rendezvous& r) {
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

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.compare(0, 4, "127.") == 0;
}

}  // namespace

std::unique_ptr<Comm> join_gloo(const Rendezvous& r) {
  const auto store = open_store(r);
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices = {is_loopback(r.address) ? c10d::ProcessGroupGloo::createDeviceForInterface("lo")
                                             : c10d::ProcessGroupGloo::createDefaultDevice()};
  auto group =
      as_peer_lost([&] { return c10::make_intrusive<c10d::ProcessGroupGloo>(store, r.rank, r.world_size, options); });
  return std::make_unique<GlooComm>(std::move(group), r.rank, r.world_size);
}

}  // namespace dsat::trainer
