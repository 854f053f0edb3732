#include "reducer.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace dsat::trainer {

void Reducer::begin_step() {
  if (c_.dtype != at::kBFloat16 || c_.comm.size() == 1) return;
  const int64_t size = std::min({kStagingElements, c_.settings.reduce_bucket, c_.layout.size()});
  staging_ = at::empty({size}, at::TensorOptions().dtype(at::kFloat));
}

void Reducer::start(const at::Tensor& tensor, int root, std::vector<std::unique_ptr<Pending>>& pending) {
  if (c_.comm.size() == 1) return;
  if (tensor.scalar_type() == at::kBFloat16) return staged(tensor, root);
  pending.push_back(root == kAllRanks ? c_.comm.all_reduce_sum(tensor) : c_.comm.reduce_sum(tensor, root));
}

void Reducer::staged(const at::Tensor& tensor, int root) {
  auto* const data = static_cast<BFloat16*>(tensor.data_ptr());
  auto* const wide = staging_.data_ptr<float>();
  for (int64_t at = 0; at < tensor.numel(); at += staging_.numel()) {
    const int64_t length = std::min(staging_.numel(), tensor.numel() - at);
    for (int64_t i = 0; i < length; ++i) wide[i] = to_float(data[at + i]);
    const at::Tensor chunk = staging_.narrow(0, 0, length);
    const auto pending = root == kAllRanks ? c_.comm.all_reduce_sum(chunk) : c_.comm.reduce_sum(chunk, root);
    pending->wait();
    if (root != kAllRanks && root != c_.comm.rank()) continue;
    for (int64_t i = 0; i < length; ++i) assign(data[at + i], wide[i]);
  }
}

}  // namespace dsat::trainer
