// Joins a rank's process group: Gloo first, then shared memory, NCCL or staging on top of it, as ranks and devices
// allow. Also the group of one rank, and the operations of every group that are made of its others.
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <set>
#include <utility>

#include "comm/gather_json.h"
#include "comm/rendezvous.h"
#include "comm/shared_region.h"
#include "device/cuda_support.h"
#include "dsat/base/files.h"
#include "dsat/error.h"
#include "dsat/trainer/comm.h"

namespace dsat::trainer {
namespace {

// A group of one: collectives have nothing to do, and a message has nobody to go to.
class SingleRank : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Pending> all_reduce_sum(const at::Tensor&) override { return nullptr; }
  std::unique_ptr<Pending> reduce_sum(const at::Tensor&, int) override { return nullptr; }
  std::unique_ptr<Pending> broadcast(const at::Tensor&, int) override { return nullptr; }
  void barrier() override {}
  void all_gather(const std::vector<at::Tensor>&) override {}
  void sum(const std::vector<Summand>&) override {}
  std::unique_ptr<Pending> send(const at::Tensor&, int peer) override { return nobody(peer); }
  std::unique_ptr<Pending> recv(const at::Tensor&, int peer) override { return nobody(peer); }
  std::unique_ptr<Comm> split(const std::vector<int>& ranks) override {
    position_in(ranks, 0, 1);
    return std::make_unique<SingleRank>();
  }

 private:
  [[noreturn]] static std::unique_ptr<Pending> nobody(int peer) {
    throw Error(fmt::format("there is no rank {} to exchange tensors with: this group has one rank", peer));
  }
};

// A table with a row of `values` for each rank, the same on all ranks: row after row, row r is rank r's.
std::vector<double> gather(Comm& comm, const std::vector<double>& values) {
  const auto columns = static_cast<int64_t>(values.size());
  const at::Tensor table = at::zeros({comm.size() * columns}, at::TensorOptions().dtype(at::kDouble));
  double* data = table.data_ptr<double>();
  std::copy(values.begin(), values.end(), data + comm.rank() * columns);
  std::vector<at::Tensor> rows;
  for (int rank = 0; rank < comm.size(); ++rank) rows.push_back(table.narrow(0, rank * columns, columns));
  if (columns > 0) comm.all_gather(rows);
  return {data, data + table.numel()};
}

// Combines the columns of the table. Every rank does it by itself, from the same numbers in the same order.
template <typename Combine>
std::vector<double> combine_rows(Comm& comm, const std::vector<double>& values, Combine combine) {
  const std::vector<double> table = gather(comm, values);
  std::vector<double> result(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(values.size()));
  for (size_t i = values.size(); i < table.size(); ++i) {
    double& cell = result[i % values.size()];
    cell = combine(cell, table[i]);
  }
  return result;
}

// The same for all processes on one kernel, also in containers that give the machine different host names. A system
// that hides it makes all its ranks look alike, which is the safe answer: then NCCL is not used.
std::string system_identity() { return try_read_file("/proc/sys/kernel/random/boot_id").bytes; }

}  // namespace

std::unique_ptr<Comm> single_rank_comm() { return std::make_unique<SingleRank>(); }

// By name: two processes may number the same device differently (CUDA_VISIBLE_DEVICES).
int ranks_on_device(Comm& comm, at::Device device) {
  const Json mine = fmt::format("{} {}", system_identity(), cuda_device_identity(device.index()));
  const std::vector<Json> all = gather_json(comm, mine);
  return static_cast<int>(std::count(all.begin(), all.end(), mine));
}

std::unique_ptr<Comm> join(const Rendezvous& rendezvous, at::Device device) {
  if (rendezvous.world_size == 1) return single_rank_comm();
  // Gloo works everywhere, and carries what the faster ways below do not: point-to-point, and operations under way.
  auto comm = join_gloo(rendezvous);
  if (SharedRegion* const region = SharedRegion::of_this_process()) {
    std::vector<int> all(static_cast<size_t>(rendezvous.world_size));
    std::iota(all.begin(), all.end(), 0);
    comm = through_shared_memory(std::move(comm), *region, std::move(all));
  }
  if (device.is_cpu()) return comm;
  if (device.is_cuda()) {
    // NCCL refuses two ranks on one device. All ranks must decide alike: one shared device is enough for staging.
    const bool is_own = max_over_ranks(*comm, {static_cast<double>(ranks_on_device(*comm, device))})[0] == 1;
    if (is_own) return through_nccl(std::move(comm));
  }
  return through_host_memory(std::move(comm));
}

// A broadcast from each rank, because Gloo's own all-gather copies everything once more.
void Comm::all_gather(const std::vector<at::Tensor>& parts) {
  std::vector<std::unique_ptr<Pending>> pending;
  for (int root = 0; root < size(); ++root) pending.push_back(broadcast(parts[static_cast<size_t>(root)], root));
  wait_all(pending);
}

void Comm::sum(const std::vector<Summand>& summands) {
  std::vector<std::unique_ptr<Pending>> pending;
  for (const Summand& one : summands) {
    const bool is_for_all = one.root == Summand::kAllRanks;
    pending.push_back(is_for_all ? all_reduce_sum(one.tensor) : reduce_sum(one.tensor, one.root));
  }
  wait_all(pending);
}

int position_in(const std::vector<int>& ranks, int rank, int size) {
  const std::string call = fmt::format("split({})", fmt::join(ranks, ", "));
  for (const int r : ranks) {
    if (r < 0 || r >= size) throw Error(fmt::format("{}: expected ranks below {}", call, size));
  }
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
    throw Error(fmt::format("{}: a rank is named twice", call));
  }
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) throw Error(fmt::format("{} is called by rank {}", call, rank));
  return static_cast<int>(found - ranks.begin());
}

// A failure must not leave before all have ended: their tensors would be freed under operations still running.
void wait_all(std::vector<std::unique_ptr<Pending>>& pending) {
  std::exception_ptr first;
  for (const auto& one : pending) {
    try {
      if (one) one->wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  pending.clear();
  if (first) std::rethrow_exception(first);
}

// Summed in the order of the ranks, so that the result is the same on every rank and run.
std::vector<double> sum_over_ranks(Comm& comm, const std::vector<double>& values) {
  return combine_rows(comm, values, [](double a, double b) { return a + b; });
}

std::vector<double> max_over_ranks(Comm& comm, const std::vector<double>& values) {
  return combine_rows(comm, values, [](double a, double b) { return std::max(a, b); });
}

}  // namespace dsat::trainer
