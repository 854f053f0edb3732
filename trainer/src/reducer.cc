#include "reducer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "lane.h"

namespace dsat::trainer {
namespace {

void sum_through(const at::Tensor& staging, Comm& comm, const Summand& summand) {
  auto* const data = static_cast<BFloat16*>(summand.tensor.data_ptr());
  auto* const wide = staging.data_ptr<float>();
  for (int64_t at = 0; at < summand.tensor.numel(); at += staging.numel()) {
    const int64_t length = std::min(staging.numel(), summand.tensor.numel() - at);
    for (int64_t i = 0; i < length; ++i) wide[i] = to_float(data[at + i]);
    comm.sum({{staging.narrow(0, 0, length), summand.root}});
    if (summand.root != Summand::kAllRanks && summand.root != comm.rank()) continue;
    for (int64_t i = 0; i < length; ++i) assign(data[at + i], wide[i]);
  }
}

}  // namespace

void Reducer::begin_step() {
  if (c_.dtype != at::kBFloat16 || c_.comm.size() == 1) return;
  const int64_t size = std::min({kStagingElements, c_.settings.reduce_bucket, c_.layout.size()});
  staging_ = at::empty({size}, at::TensorOptions().dtype(at::kFloat));
}

std::unique_ptr<Pending> Reducer::start(std::string name, std::vector<Summand> summands) {
  if (c_.comm.size() == 1 || summands.empty()) return nullptr;
  const auto sum = [summands = std::move(summands), staging = staging_](Comm& comm) {
    if (!staging.defined()) return comm.sum(summands);
    for (const Summand& summand : summands) sum_through(staging, comm, summand);
  };
  if (c_.settings.overlap_comm) return c_.lane.start(std::move(name), sum);
  c_.lane.run(std::move(name), sum);
  return nullptr;
}

}  // namespace dsat::trainer
