#include "dsat/trainer/comm.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <exception>
#include <set>

#include "dsat/error.h"
#include "rendezvous.h"

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
  at::Tensor table = at::zeros({comm.size() * columns}, at::TensorOptions().dtype(at::kDouble));
  double* data = table.data_ptr<double>();
  std::copy(values.begin(), values.end(), data + comm.rank() * columns);
  if (columns > 0) {
    if (const auto pending = comm.all_reduce_sum(table)) pending->wait();
  }
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

}  // namespace

std::unique_ptr<Comm> join(const Rendezvous& rendezvous) {
  if (rendezvous.world_size == 1) return std::make_unique<SingleRank>();
  return join_gloo(rendezvous);
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
