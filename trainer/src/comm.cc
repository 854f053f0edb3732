#include "comm.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <exception>

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
