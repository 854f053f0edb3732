// Staging: tensors of a device over a group that can only send those of the host. A tensor is copied to the host,
// exchanged there, and the result is copied back when the operation ends.
#include <utility>

#include "comm/rendezvous.h"

namespace dsat::trainer {
namespace {

bool is_on_host(const at::Tensor& tensor) { return tensor.is_cpu(); }

// A host collective under way, and the copy that follows it.
class StagedPending : public Pending {
 public:
  // `back`: where the result goes; undefined: nowhere.
  StagedPending(std::unique_ptr<Pending> pending, at::Tensor host, at::Tensor back)
      : pending_(std::move(pending)), host_(std::move(host)), back_(std::move(back)) {}
  void wait() override {
    if (pending_) pending_->wait();
    if (back_.defined()) back_.copy_(host_);
  }

 private:
  std::unique_ptr<Pending> pending_;
  at::Tensor host_, back_;
};

class StagedComm : public Comm {
 public:
  explicit StagedComm(std::unique_ptr<Comm> host) : host_(std::move(host)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void barrier() override { host_->barrier(); }
  bool sums_bfloat16() const override { return host_->sums_bfloat16(); }

  std::unique_ptr<Pending> all_reduce_sum(const at::Tensor& tensor) override {
    return staged(tensor, tensor, [&](const at::Tensor& t) { return host_->all_reduce_sum(t); });
  }
  std::unique_ptr<Pending> reduce_sum(const at::Tensor& tensor, int root) override {
    const at::Tensor back = root == rank() ? tensor : at::Tensor();
    return staged(tensor, back, [&](const at::Tensor& t) { return host_->reduce_sum(t, root); });
  }
  std::unique_ptr<Pending> broadcast(const at::Tensor& tensor, int root) override {
    const at::Tensor back = root == rank() ? at::Tensor() : tensor;
    return staged(tensor, back, [&](const at::Tensor& t) { return host_->broadcast(t, root); });
  }
  std::unique_ptr<Pending> send(const at::Tensor& tensor, int peer) override {
    return staged(tensor, {}, [&](const at::Tensor& t) { return host_->send(t, peer); });
  }
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int peer) override {
    return staged(tensor, tensor, [&](const at::Tensor& t) { return host_->recv(t, peer); });
  }

  void all_gather(const std::vector<at::Tensor>& parts) override {
    if (is_on_host(parts.front())) return host_->all_gather(parts);
    // This rank's part is the only one with a meaning; the other copies are room for what arrives.
    std::vector<at::Tensor> copies;
    for (const at::Tensor& part : parts) copies.push_back(part.to(at::kCPU));
    host_->all_gather(copies);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (static_cast<int>(i) != rank()) parts[i].copy_(copies[i]);
    }
  }
  void sum(const std::vector<Summand>& summands) override {
    std::vector<Summand> copies;
    for (const Summand& one : summands) copies.push_back({one.tensor.to(at::kCPU), one.root});
    host_->sum(copies);
    for (size_t i = 0; i < summands.size(); ++i) {
      const bool is_mine = copies[i].root == Summand::kAllRanks || copies[i].root == rank();
      if (is_mine && !is_on_host(summands[i].tensor)) summands[i].tensor.copy_(copies[i].tensor);
    }
  }

  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    return through_host_memory(host_->split(ranks));
  }

 private:
  // `back`: the tensor that gets the result; undefined on ranks that get none.
  template <typename Call>
  std::unique_ptr<Pending> staged(const at::Tensor& tensor, const at::Tensor& back, Call call) {
    if (is_on_host(tensor)) return call(tensor);
    const at::Tensor copy = tensor.to(at::kCPU);
    return std::make_unique<StagedPending>(call(copy), copy, back);
  }

  std::unique_ptr<Comm> host_;
};

}  // namespace

std::unique_ptr<Comm> through_host_memory(std::unique_ptr<Comm> comm) {
  if (comm->size() == 1) return comm;
  return std::make_unique<StagedComm>(std::move(comm));
}

}  // namespace dsat::trainer
