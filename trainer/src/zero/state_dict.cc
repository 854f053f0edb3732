// ZeroEngine's weights as other programs know them: each parameter made whole out of the ranks' parts of the master
// copy, and the other way round.
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "zero/zero_engine.h"

namespace dsat::trainer {
namespace {

WeightSpec with_aliases(WeightSpec spec, const std::map<std::string, std::string>& aliases) {
  for (const auto& [alias, name] : aliases) {
    if (name == spec.name) spec.aliases.push_back(alias);
  }
  return spec;
}

template <typename Call>
void for_each_slot(const Layout& layout, Call call) {
  for (const GroupSlot& group : layout.groups()) {
    for (const ParameterSlot& slot : group.parameters) call(slot);
  }
}

}  // namespace

std::vector<WeightSpec> ZeroEngine::weight_specs() const {
  std::vector<WeightSpec> specs;
  for_each_slot(layout_, [&](const ParameterSlot& slot) {
    specs.push_back(with_aliases({slot.spec.name, slot.spec.shape, at::kFloat, {}}, aliases_));
  });
  for (const auto& [name, tensor] : untrained_) {
    const at::ScalarType dtype = tensor.is_floating_point() ? at::kFloat : tensor.scalar_type();
    specs.push_back(with_aliases({name, tensor.sizes().vec(), dtype, {}}, aliases_));
  }
  return specs;
}

// The owners send their pieces one after the other; at stage 0 rank 0 has them all.
void ZeroEngine::collect_weights(const std::function<void(const at::Tensor& values)>& take) {
  edited_.check();
  const at::Tensor master = optimizer_->arrays().front().values;
  for_each_slot(layout_, [&](const ParameterSlot& slot) {
    const at::Tensor flat = at::empty({slot.size}, context_.options(at::kFloat));
    comm_thread_.run("the collection of weights", [&](Comm& comm) {
      for (const Piece& piece : partition_.pieces(slot.begin, slot.size)) {
        const at::Tensor part = flat.narrow(0, piece.begin - slot.begin, piece.size);
        if (piece.owner == comm.rank()) part.copy_(master.narrow(0, piece.shard_begin, piece.size));
        if (settings_.stage > 0) broadcast_elements(comm, part, piece.owner);
      }
    });
    if (comm_->rank() == 0) take(flat.view(slot.spec.shape).to(at::kCPU));
  });
  if (comm_->rank() > 0) return;
  for (const auto& [name, tensor] : untrained_) {
    const at::ScalarType dtype = tensor.is_floating_point() ? at::kFloat : tensor.scalar_type();
    take(tensor.detach().to(at::kCPU, dtype).contiguous());
  }
}

void ZeroEngine::spread_weights(const std::function<at::Tensor(const WeightSpec& spec)>& read) {
  edited_.check();
  const std::vector<WeightSpec> specs = weight_specs();
  size_t next = 0;
  // The whole tensor on every rank.
  const auto receive = [&](at::ScalarType dtype) {
    const WeightSpec& spec = specs[next++];
    at::Tensor values = at::empty(spec.shape, context_.options(dtype));
    if (comm_->rank() == 0) values.copy_(read(spec));
    comm_thread_.run("the distribution of weights",
                     [&](Comm& comm) { broadcast_elements(comm, values.view({-1}), 0); });
    return values;
  };
  const at::Tensor master = optimizer_->arrays().front().values;
  for_each_slot(layout_, [&](const ParameterSlot& slot) {
    const at::Tensor flat = receive(at::kFloat).view({-1});
    for (const Piece& piece : partition_.pieces(slot.begin, slot.size)) {
      if (piece.owner != comm_->rank()) continue;
      master.narrow(0, piece.shard_begin, piece.size).copy_(flat.narrow(0, piece.begin - slot.begin, piece.size));
    }
  });
  for (const auto& [name, tensor] : untrained_) tensor.detach().copy_(receive(specs[next].dtype));
  optimizer_->publish_master();
  parameters_->publish();
}

std::string ZeroEngine::differing_buffer() {
  std::vector<double> bounds;
  for (const auto& [name, tensor] : untrained_) {
    const double sum =
        tensor.numel() == 0 || tensor.is_complex() ? 0 : tensor.detach().to(at::kDouble).sum().item<double>();
    bounds.push_back(sum);
    bounds.push_back(-sum);
  }
  if (bounds.empty()) return "";
  bounds = max_over_ranks(*comm_, bounds);
  for (size_t i = 0; i < untrained_.size(); ++i) {
    if (bounds[2 * i] != -bounds[2 * i + 1]) return untrained_[i].name;
  }
  return "";
}

}  // namespace dsat::trainer
