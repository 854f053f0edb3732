// Turns a bucket of gradients into sums with an owner each, and runs them through a fp32 staging buffer where the group
// cannot sum their type: widened, summed, and rounded once into the gradient.
#include "zero/reducer.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/comm_thread.h"

namespace dsat::trainer {
namespace {

// Chunk by chunk through `staging`. A rank that does not get the sum keeps its own gradient, which it drops later.
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
  const bool is_direct = c_.dtype == at::kFloat || (c_.dtype == at::kBFloat16 && c_.comm.sums_bfloat16());
  if (is_direct || c_.comm.size() == 1) return;
  // No larger than what is summed at once: a step's peak counts the buffer as well.
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
  if (c_.settings.overlap_comm) return c_.comm_thread.start(std::move(name), sum);
  c_.comm_thread.run(std::move(name), sum);
  return nullptr;
}

std::unique_ptr<Pending> Reducer::start_bucket(int64_t bucket, const at::Tensor& values, int64_t begin) {
  std::vector<Summand> summands;
  if (c_.settings.stage == 0 || !c_.settings.reduce_scatter) {
    summands.push_back({values});
  } else {
    for (const Piece& piece : c_.partition.pieces(begin, values.numel())) {
      summands.push_back({values.narrow(0, piece.begin - begin, piece.size), piece.owner});
    }
  }
  return start(fmt::format("the sum of gradient bucket {}", bucket), std::move(summands));
}

}  // namespace dsat::trainer
