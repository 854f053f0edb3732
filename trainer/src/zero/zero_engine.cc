// Puts the engine's parts together: layout, partition, parameters, gradients and optimizer, for the stage in the
// settings. Afterwards a step only calls them in their order; which stage it is, only the parts know.
#include "zero/zero_engine.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/backward_thread.h"
#include "device/device_memory.h"
#include "files/checkpoint_dir.h"
#include "watch/heartbeat.h"
#include "zero/cut_storage.h"
#include "zero/gathered_parameters.h"
#include "zero/initial_values.h"
#include "zero/partitioned_gradients.h"
#include "zero/replicated_gradients.h"
#include "zero/replicated_parameters.h"

namespace dsat::trainer {
namespace {

Layout layout_of(const ModelParts& parts, int world_size) {
  std::vector<std::vector<ParameterSpec>> groups;
  for (const auto& group : parts.groups) {
    groups.emplace_back();
    for (const ModelParameter& parameter : group) groups.back().push_back(parameter.spec);
  }
  return Layout(groups, world_size, parts.persistent);
}

// Stage 3 cuts each group by itself, so that a group can be gathered without the rest; stages 1 and 2 cut the whole
// array.
Partition partition_of(const Layout& layout, int stage, int rank) {
  if (stage == 0) return Partition::replicated(layout, rank);
  return stage == 3 ? Partition::by_group(layout) : Partition::contiguous(layout);
}

// A group of this engine's own, with all ranks. On a device its first operation takes the transport's memory there.
// That happens here, before the model's states, so that a budget which is too small fails at the states, not in the
// transport.
std::shared_ptr<Comm> split_whole_group(Comm& world, at::Device device) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shared_ptr<Comm> group = world.split(ranks);
  if (!device.is_cpu()) group->sum({{at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device))}});
  return group;
}

std::vector<Tensors> leaves_of(const ModelParts& parts) {
  std::vector<Tensors> leaves;
  for (const auto& group : parts.groups) {
    leaves.emplace_back();
    for (const ModelParameter& parameter : group) leaves.back().push_back(parameter.tensor);
  }
  return leaves;
}

std::unique_ptr<Parameters> make_parameters(const ZeroContext& context, std::vector<Tensors> leaves) {
  if (context.settings.stage == 3) return std::make_unique<GatheredParameters>(context, std::move(leaves));
  return std::make_unique<ReplicatedParameters>(context, std::move(leaves));
}

// `group_done` is called in backward when the last gradient of a group has arrived (stages 2 and 3).
std::unique_ptr<Gradients> make_gradients(const ZeroContext& context, Parameters& parameters,
                                          std::function<void(size_t group)> group_done) {
  if (context.settings.stage < 2) return make_replicated_gradients(context, parameters);
  return std::make_unique<PartitionedGradients>(context, parameters, std::move(group_done));
}

// Rank 0's values for all ranks: a model that was built with random numbers is another one on each. Collectives know
// contiguous tensors only, and not every type: a buffer may be bool, int16 or complex.
void broadcast_from_rank_0(Comm& comm, const at::Tensor& tensor) {
  if (comm.size() == 1 || tensor.numel() == 0) return;
  const at::Tensor values = tensor.detach().contiguous();
  comm.broadcast(values.view({-1}).view(at::kByte), 0)->wait();
  if (!tensor.is_contiguous()) tensor.detach().copy_(values);
}

// Whole on this rank, with rank 0's values.
void unite(Comm& comm, const at::Tensor& tensor) {
  if (tensor.has_storage() && is_cut(tensor.storage())) return make_whole(tensor.storage(), comm);
  broadcast_from_rank_0(comm, tensor);
}

// This rank's elements, from zeros: what the model's own tensors hold, or what their specification says. Padding stays
// zero. Group by group the tensors then take the engine's memory, so that the model and the engine's copy of it are
// never both whole.
void fill_and_bind(const ModelParts& parts, const ZeroContext& c, const at::Tensor& master, Parameters& parameters) {
  if (master.is_cpu()) {
    fill_initial(c.layout, c.partition, c.comm.rank(), c.seed, master.data_ptr<float>());
  } else {
    const at::Tensor values = at::zeros({master.numel()}, at::TensorOptions().dtype(at::kFloat));
    fill_initial(c.layout, c.partition, c.comm.rank(), c.seed, values.data_ptr<float>());
    master.copy_(values);
  }
  for (size_t i = 0; i < parts.groups.size(); ++i) {
    for (size_t k = 0; k < parts.groups[i].size(); ++k) {
      if (!parts.groups[i][k].has_values) continue;
      const ParameterSlot& slot = c.layout.groups()[i].parameters[k];
      unite(c.comm, parts.groups[i][k].tensor);
      const at::Tensor values = parts.groups[i][k].tensor.detach().reshape({-1});
      for (const Piece& piece : c.partition.pieces(slot.begin, slot.size)) {
        if (piece.owner != c.comm.rank()) continue;
        master.narrow(0, piece.shard_begin, piece.size).copy_(values.narrow(0, piece.begin - slot.begin, piece.size));
      }
    }
    parameters.bind(i);
  }
  parameters.all_bound();
}

// Untrained tensors as a checkpoint keeps them: on the host, contiguous and, where they are real numbers, in fp32, so
// that a training in another precision can load them.
std::vector<at::Tensor> checkpoint_forms(const std::vector<UntrainedTensor>& tensors) {
  std::vector<at::Tensor> forms;
  for (const UntrainedTensor& untrained : tensors) {
    const at::Tensor values = untrained.tensor.detach();
    const at::ScalarType dtype = values.is_floating_point() ? at::kFloat : values.scalar_type();
    forms.push_back(values.to(at::kCPU, dtype).contiguous());
  }
  return forms;
}

// Names and shapes of what checkpoint_forms() makes.
std::vector<WeightSpec> specs_of(const std::vector<UntrainedTensor>& tensors) {
  std::vector<WeightSpec> specs;
  for (const auto& [name, tensor] : tensors) {
    const at::ScalarType dtype = tensor.is_floating_point() ? at::kFloat : tensor.scalar_type();
    specs.push_back({name, tensor.sizes().vec(), dtype, {}});
  }
  return specs;
}

std::vector<Blob> blobs_of(const std::vector<UntrainedTensor>& tensors, const std::vector<at::Tensor>& forms) {
  std::vector<Blob> blobs;
  for (size_t i = 0; i < forms.size(); ++i) {
    blobs.push_back({checkpoint_buffer_name(tensors[i].name), forms[i].data_ptr(), forms[i].nbytes()});
  }
  return blobs;
}

}  // namespace

ZeroEngine::ZeroEngine(const ModelParts& parts, const Settings& settings, Comm& world, at::Device device, uint64_t seed,
                       SquaredNorm squared_norm)
    : settings_(settings),
      callers_(world),
      comm_(split_whole_group(world, device)),
      layout_(layout_of(parts, comm_->size())),
      partition_(partition_of(layout_, settings.stage, comm_->rank())),
      comm_thread_(comm_, device),
      context_{settings_, layout_, partition_, *comm_, comm_thread_, device, dtype_of(settings), seed},
      parameters_(make_parameters(context_, leaves_of(parts))),
      edited_(layout_, parameters_->groups()) {
  for (const auto& [name, tensor] : parts.untrained) {
    unite(*comm_, tensor);
    const at::ScalarType dtype = tensor.is_floating_point() ? context_.dtype : tensor.scalar_type();
    tensor.set_data(tensor.detach().to(context_.device, dtype));
  }
  optimizer_ = std::make_unique<ShardedOptimizer>(
      context_, parameters_->shard(), parts.update_groups,
      [&](const at::Tensor& master) { fill_and_bind(parts, context_, master, *parameters_); }, std::move(squared_norm));
  parameters_->publish();
  untrained_ = parts.untrained;
  aliases_ = parts.aliases;
  if (settings_.reduce_bucket == 0) settings_.reduce_bucket = layout_.largest_group();
  gradients_ = make_gradients(context_, *parameters_, [this](size_t group) { parameters_->group_done(group); });
  edited_.accept();
}

void ZeroEngine::begin_step() {
  edited_.check();
  parameters_->begin_step();
  gradients_->begin_step();
}

// After a pass that has failed, the next gradient is nobody's again.
void ZeroEngine::run_backward(const at::Tensor& loss, double gradient, const std::vector<Part>& parts) {
  for (const Part& part : parts) part.engine->gradients_->begin_backward(part.is_last);
  try {
    const BackwardOnThisThread here;  // hooks and gathering run on this thread
    // The gradient of the loss is the loss scale, which may be larger than fp16 can hold: it starts in fp32. An
    // overflow after that is for the loss scaler to notice.
    const at::Tensor wide = loss.scalar_type() == at::kHalf ? loss.to(at::kFloat) : loss;
    const double scale = parts.front().engine->optimizer_->loss_scale();
    wide.backward(at::full(wide.sizes(), gradient * scale, wide.options()));
    for (const Part& part : parts) part.engine->parameters_->check();
  } catch (...) {
    for (const Part& part : parts) part.engine->gradients_->abandon_backward();
    throw;
  }
  for (const Part& part : parts) part.engine->gradients_->end_backward();
}

void ZeroEngine::backward_from(const at::Tensor& output, const at::Tensor& gradient) {
  gradients_->begin_backward(/*is_last=*/false);
  const BackwardOnThisThread here;
  output.backward(gradient);
  gradients_->end_backward();
}

void ZeroEngine::sum_gradients() {
  // A backward pass without a graph: nothing arrives, and its end reduces all buckets.
  gradients_->begin_backward(/*is_last=*/true);
  gradients_->end_backward();
}

// Ranks that gathered different groups have summed nonsense: that is found before the update.
void ZeroEngine::step() {
  edited_.check();
  parameters_->compare_uses();
  if (optimizer_->step(gradients_->shard())) parameters_->publish();
  abandon_step();  // the update is made: what is left is to drop the gradients
  clear_out_of_memory();
}

void ZeroEngine::abandon_step() {
  gradients_->end_step();
  parameters_->end_step();
}

std::vector<size_t> ZeroEngine::groups_of(const Tensors& which) const {
  std::vector<size_t> groups;
  const auto is_in = [](const Tensors& tensors, const at::Tensor& one) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) { return tensor.is_same(one); });
  };
  size_t found = 0;
  for (size_t id = 0; id < parameters_->groups().size(); ++id) {
    const Tensors& leaves = parameters_->groups()[id];
    const auto count = static_cast<size_t>(
        std::count_if(leaves.begin(), leaves.end(), [&](const at::Tensor& leaf) { return is_in(which, leaf); }));
    found += count;
    if (which.empty() || count > 0) groups.push_back(id);
  }
  if (found < which.size()) {
    throw Error("edit_parameters() got a tensor that is no trained parameter of this engine, or one twice");
  }
  return groups;
}

// The ranks first agree, in the group of the caller: an edit on some of them alone would meet another operation of the
// engine's own group and give it wrong data.
void ZeroEngine::edit(const Tensors& which, const std::function<void()>& change) {
  edited_.check();
  const std::vector<size_t> groups = groups_of(which);
  double hash = 1;
  for (const size_t id : groups) hash = std::fmod(hash * 31 + static_cast<double>(id) + 1, 1e12);
  {
    const WaitingIn waiting("edit_parameters(), which all ranks must call");
    const std::vector<double> bounds = max_over_ranks(callers_, {hash, -hash});
    if (bounds[0] != -bounds[1])
      throw Error("ranks call edit_parameters() for different parameters, or not all call it");
  }
  for (const size_t id : groups) parameters_->hold(id);
  {
    const c10::AutoGradMode no_graph(false);
    change();
    for (const size_t id : groups) parameters_->take(id);
  }
  edited_.check(groups);  // what was not held must be as it was
  optimizer_->adopt_parameters();
  edited_.accept();
}

CheckpointContents ZeroEngine::contents(const std::vector<at::Tensor>& forms, const CheckpointScope& scope) {
  return {context_, *optimizer_, blobs_of(untrained_, forms), specs_of(untrained_), aliases_, scope};
}

void ZeroEngine::save(const std::string& dir, const std::string& tag, const Json& client_state,
                      const CheckpointScope& scope) {
  edited_.check();
  const std::vector<at::Tensor> forms = checkpoint_forms(untrained_);
  save_checkpoint(contents(forms, scope), dir, tag, client_state);
}

Json ZeroEngine::load(const std::string& dir, const std::string& tag, const CheckpointScope& scope) {
  const std::vector<at::Tensor> forms = checkpoint_forms(untrained_);
  const Json client_state = load_checkpoint(contents(forms, scope), dir, tag);
  for (size_t i = 0; i < forms.size(); ++i) untrained_[i].tensor.detach().copy_(forms[i]);
  parameters_->publish();
  return client_state;
}

}  // namespace dsat::trainer
