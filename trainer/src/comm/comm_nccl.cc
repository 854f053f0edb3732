// Collectives between CUDA devices over NCCL; what lies on the host goes over another group. An operation is ordered on
// the devices' streams and the host does not wait for it: wait() makes what this thread starts next come after it.
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>

#include "comm/comm_c10d.h"
#include "device/cuda_support.h"

namespace dsat::trainer {
namespace {

struct Nccl {
  using Group = c10d::ProcessGroupNCCL;

  static at::Tensor borrow(const at::Tensor& tensor) { return tensor.view({-1}); }
  static c10::intrusive_ptr<Group> make_group(const Store& store, int rank, int size) {
    return c10::make_intrusive<Group>(store, rank, size);
  }
  // Leaks the group on purpose: its destructor would abort what is under way, also on ranks that still wait for it.
  static void let_go(c10::intrusive_ptr<Group> group) { group.release(); }
};

class NcclComm : public Comm {
 public:
  // `point_to_point`: a second group of the same ranks, out of which pairs for send() and recv() are split.
  NcclComm(std::unique_ptr<Comm> host, std::unique_ptr<Comm> device, std::unique_ptr<Comm> point_to_point)
      : host_(std::move(host)), device_(std::move(device)), point_to_point_(std::move(point_to_point)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void barrier() override { host_->barrier(); }

  std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) override {
    return of(tensor).all_reduce_sum(tensor);
  }
  std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) override {
    return of(tensor).reduce_sum(tensor, root);
  }
  std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) override {
    return of(tensor).broadcast(tensor, root);
  }
  std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) override {
    return tensor.is_cpu() ? host_->send(tensor, peer) : direction(rank(), peer).send(tensor, 1);
  }
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) override {
    return tensor.is_cpu() ? host_->recv(tensor, peer) : direction(peer, rank()).recv(tensor, 0);
  }
  void all_gather(const std::vector<at::Tensor>& parts) override { of(parts.front()).all_gather(parts); }
  // All summands of a call are on the same device.
  void sum(const std::vector<Summand>& summands) override {
    if (!summands.empty()) of(summands.front().tensor).sum(summands);
  }

  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    auto host = host_->split(ranks);
    if (host->size() == 1) return host;
    return std::make_unique<NcclComm>(std::move(host), device_->split(ranks), point_to_point_->split(ranks));
  }

 private:
  Comm& of(const at::Tensor& tensor) const { return tensor.is_cpu() ? *host_ : *device_; }

  // A communicator for each direction between two ranks. Operations of one communicator run one after the other: two
  // stages that send to each other over one at the same time would each wait for the other's turn to receive.
  Comm& direction(int from, int to) {
    std::unique_ptr<Comm>& pair = directions_[{from, to}];
    if (!pair) pair = point_to_point_->split({from, to});
    return *pair;
  }

  std::unique_ptr<Comm> host_, device_, point_to_point_;
  std::map<std::pair<int, int>, std::unique_ptr<Comm>> directions_;
};

}  // namespace

std::unique_ptr<Comm> through_nccl(std::unique_ptr<Comm> host) {
  // Operations own their tensors until wait(). By default LibTorch also keeps each tensor until the device has passed
  // the operation, and blocks that stage 3 has given back would pile up.
  ::setenv("TORCH_NCCL_AVOID_RECORD_STREAMS", "1", /*overwrite=*/0);
  const auto group = [&](const char* name) {
    auto store = c10::make_intrusive<c10d::PrefixStore>(name, rendezvous_store());
    return std::make_unique<C10dComm<Nccl>>(Nccl{}, store, host->rank(), host->size());
  };
  auto device = group("nccl"), point_to_point = group("nccl_ways");
  return std::make_unique<NcclComm>(std::move(host), std::move(device), std::move(point_to_point));
}

}  // namespace dsat::trainer
