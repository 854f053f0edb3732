// For each tie that goes over several stages, the ranks that hold a copy in this rank's pipeline form a group of their
// own; gradients of the copies are summed over it.
#include "pipeline/tied_parameters.h"

#include <algorithm>
#include <map>
#include <string>

#include "zero/shard_update.h"

namespace dsat::trainer {
namespace {

// The layers of one tie: its name, and the first layer in each stage that has it.
struct TiedLayers {
  std::string name;
  std::map<int, size_t> first_layer;  // of the chain, by stage
};

// In the order of the chain, which is the same on every rank: split() is collective.
std::vector<TiedLayers> tied_layers_of(const LayerChain& chain, const Segments& stages) {
  std::vector<TiedLayers> all;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (size_t i = stages[stage].begin; i < stages[stage].end; ++i) {
      const std::string& name = chain.layers()[i].tie;
      if (name.empty()) continue;
      auto known = std::find_if(all.begin(), all.end(), [&](const TiedLayers& tied) { return tied.name == name; });
      if (known == all.end()) known = all.insert(all.end(), TiedLayers{name, {}});
      known->first_layer.emplace(static_cast<int>(stage), i);
    }
  }
  return all;
}

void sum(Comm& comm, const at::Tensor& gradient) {
  // In fp32, as all gradients are summed (reducer.h): Gloo cannot sum 16-bit brain floats.
  const at::Tensor wide = gradient.to(at::kFloat);
  if (const auto pending = comm.all_reduce_sum(wide)) pending->wait();
  if (!wide.is_same(gradient)) gradient.copy_(wide);
}

}  // namespace

TiedParameters::TiedParameters(const LayerChain& chain, const Segments& stages, const PipelineGrid& grid, Comm& world,
                               const ZeroEngine& engine)
    : engine_(engine) {
  const int own = grid.stage_of(world.rank());
  for (const TiedLayers& tied : tied_layers_of(chain, stages)) {
    const auto mine = tied.first_layer.find(own);
    // Within one stage the layers share the tensors themselves.
    if (tied.first_layer.size() < 2 || mine == tied.first_layer.end()) continue;
    std::vector<int> ranks;
    for (const auto& [holder, layer] : tied.first_layer) {
      ranks.push_back(grid.rank_of(holder, grid.data_parallel_rank_of(world.rank())));
    }
    const size_t layer = mine->second - stages[static_cast<size_t>(own)].begin;
    ties_.push_back({layer, mine == tied.first_layer.begin(), world.split(ranks)});
  }
}

void TiedParameters::sum_gradients() {
  for (const Tie& tie : ties_) {
    for (const at::Tensor& parameter : engine_.parameters()[tie.layer]) sum(*tie.holders, parameter.grad());
  }
}

double TiedParameters::squares_counted_elsewhere(const at::Tensor& gradient_shard, int data_parallel_rank) const {
  double squares = 0;
  for (const Tie& tie : ties_) {
    if (tie.is_first_holder) continue;
    const GroupSlot& slot = engine_.layout().groups()[tie.layer];
    // Only the pieces that this rank's shard has.
    for (const Piece& piece : engine_.partition().pieces(slot.begin, slot.size)) {
      if (piece.owner != data_parallel_rank) continue;
      squares += sum_of_squares(gradient_shard.narrow(0, piece.shard_begin, piece.size));
    }
  }
  return squares;
}

}  // namespace dsat::trainer
