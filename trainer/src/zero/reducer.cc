#include "zero/reducer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "comm/comm_thread.h"

namespace dsat::trainer {
namespace {

void sum_through(const at::Tensor& staging, Comm& comm, const Summand& summand) {
  for (int64_t at = 0; at < summand.tensor.numel(); at += staging.numel()) {
    const int64_t length = std::min(staging.numel(), summand.tensor.numel() - at);
    const at::Tensor part = summand.tensor.narrow(0, at, length), wide = staging.narrow(0, 0, length);
    wide.copy_(part);
    comm.sum({{wide, summand.root}});
    if (summand.root == Summand::kAllRanks || summand.root == comm.rank()) part.copy_(wide);
  }
}

}  // namespace

void Reducer::begin_step() {
  if (c_.dtype == at::kFloat || c_.comm.size() == 1) return;
  const int64_t most = c_.device.is_cpu() ? kStagingElements : kDeviceStagingElements;
  const int64_t size = std::min({most, c_.settings.reduce_bucket, c_.layout.size()});
  staging_ = at::empty({size}, c_.options(at::kFloat));
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
