#include "dsat/trainer/comm.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>

#include "comm/gather_json.h"
#include "comm/rendezvous.h"
#include "comm/shared_region.h"
#include "device/cuda_support.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

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
    throw Error("there is no rank " + std::to_string(peer) + " to exchange tensors with: this group has one rank");
  }
};

// Row r holds rank r's values on every rank.
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

// The same for all processes of a machine's system, whatever they call their host.
std::string system_identity() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string identity;
  std::getline(in, identity);
  return identity;
}

}  // namespace

std::unique_ptr<Comm> alone() { return std::make_unique<SingleRank>(); }

int ranks_on_device(Comm& comm, at::Device device) {
  const Json mine = system_identity() + " " + cuda_device_identity(device.index());
  const std::vector<Json> all = gather_json(comm, mine);
  return static_cast<int>(std::count(all.begin(), all.end(), mine));
}

std::unique_ptr<Comm> join(const Rendezvous& rendezvous, at::Device device) {
  if (rendezvous.world_size == 1) return alone();
  auto comm = join_gloo(rendezvous);
  if (SharedRegion* const region = SharedRegion::of_this_process()) {
    std::vector<int> all(static_cast<size_t>(rendezvous.world_size));
    std::iota(all.begin(), all.end(), 0);
    comm = through_shared_memory(std::move(comm), *region, std::move(all));
  }
  if (device.is_cpu()) return comm;
  if (device.is_cuda()) {
    // NCCL refuses two ranks on one device.
    const bool is_own = max_over_ranks(*comm, {static_cast<double>(ranks_on_device(*comm, device))})[0] == 1;
    if (is_own) return through_nccl(std::move(comm));
  }
  return through_host_memory(std::move(comm));
}

// As broadcasts, because Gloo's all-gather copies everything once more.
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
  std::string text;
  for (const int r : ranks) text += (text.empty() ? "" : ", ") + std::to_string(r);
  for (const int r : ranks) {
    if (r < 0 || r >= size) throw Error("split(" + text + "): expected ranks below " + std::to_string(size));
  }
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
    throw Error("split(" + text + "): a rank is named twice");
  }
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) throw Error("split(" + text + ") is called by rank " + std::to_string(rank));
  return static_cast<int>(found - ranks.begin());
}

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
