// One optimizer step: the gradient's norm over all ranks, loss scale and clipping as one factor, the update on the
// master copy (host or device, shard_update.h), and the rounded copy back into the parameters.
#include "zero/sharded_optimizer.h"

#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/offload_memory.h"
#include "optimizer/learning_rate.h"

namespace dsat::trainer {

ShardedOptimizer::ShardedOptimizer(const ZeroContext& context, at::Tensor parameters, std::vector<UpdateGroup> groups,
                                   const std::function<void(const at::Tensor&)>& fill_master, SquaredNorm squared_norm)
    : c_(context),
      squared_norm_(std::move(squared_norm)),
      ranges_(owned_ranges(context.layout, context.partition, context.comm.rank())),
      groups_(std::move(groups)),
      parameters_(std::move(parameters)),
      master_(parameters_),
      scaler_(context.settings.loss_scale) {
  for (const GroupSlot& layer : c_.layout.groups()) {
    for (const ParameterSlot& slot : layer.parameters) group_of_.push_back(slot.spec.update);
  }
  runs_ = runs_of_groups();
  const Settings& s = c_.settings;
  const int64_t size = parameters_.numel();
  const bool is_elsewhere = parameters_.device() != c_.device;  // offload_param
  const auto new_state = [&] { return state_zeros(size, at::kFloat, c_.device, s.offload_optimizer); };
  if (s.is_16_bit() || s.offload_optimizer || is_elsewhere) {
    // 16-bit parameters need a master in fp32; offloaded states need it where they lie.
    master_ = new_state();
  }
  fill_master(master_);
  publish_master();
  for (int i = 0; i < s.optimizer.num_states(); ++i) states_.push_back(new_state());
  if (s.offload_optimizer && s.stage == 1) host_gradient_ = host_zeros(size, c_.dtype, c_.device);
}

// Averaging, unscaling and clipping become one factor, so that the gradient is read once and never written.
bool ShardedOptimizer::step(const at::Tensor& summed) {
  at::Tensor gradient = summed;
  // The update runs where its states lie.
  if (host_gradient_.defined()) {
    host_gradient_.copy_(summed);
    gradient = host_gradient_;
  }
  const Settings& s = c_.settings;
  // The gradient is a sum over ranks, multiplied by the loss scale.
  double scale = 1 / (c_.comm.size() * scaler_.scale());
  // A tuning trial reports the norms of its first steps, which are not timed (docs/guard.md).
  const bool is_reported = s.tuning.enabled && updates_ < s.tuning.start_profile_step;
  gradient_norm_.reset();
  if (s.gradient_clipping > 0 || s.loss_scale.enabled || is_reported) {
    const double norm = scale * std::sqrt(squares_of(gradient));
    gradient_norm_ = norm;
    const bool overflow = s.loss_scale.enabled && !std::isfinite(norm);
    scaler_.update(overflow);
    if (overflow) {
      ++skipped_steps_;
      return false;
    }
    scale *= clip_factor(norm, s.gradient_clipping);
  }
  const ShardTensors shard{master_, gradient, states_};
  if (s.optimizer.kind == OptimizerSettings::Kind::lamb) {
    update_with_lamb(shard, scale);
  } else {
    for (const Run& run : runs_) {
      update(settings_now(run.group), updates_ + 1, scale, shard.narrow(run.begin, run.size));
    }
  }
  ++updates_;
  publish_master();
  return true;
}

double ShardedOptimizer::learning_rate() const {
  if (set_rate_) return *set_rate_;
  if (set_schedule_) return set_schedule_(updates_);
  return trainer::learning_rate(c_.settings.schedule, c_.settings.optimizer.lr, updates_);
}

void ShardedOptimizer::set_learning_rate(double rate) { set_rate_ = rate; }

void ShardedOptimizer::set_schedule(std::function<double(int64_t updates)> schedule) {
  set_rate_.reset();
  set_schedule_ = std::move(schedule);
}

OptimizerSettings ShardedOptimizer::settings_now(int64_t group) const {
  OptimizerSettings settings = c_.settings.optimizer;
  const UpdateGroup& own = groups_[static_cast<size_t>(group)];
  settings.lr = learning_rate() * own.lr_scale;
  settings.weight_decay = own.weight_decay.value_or(settings.weight_decay);
  if (const std::optional<Betas> betas = scheduled_betas(c_.settings.schedule, updates_)) {
    settings.beta1 = betas->beta1;
    settings.beta2 = betas->beta2;
  }
  return settings;
}

// With one group it is the whole shard, padding too: its zeros stay zeros.
std::vector<ShardedOptimizer::Run> ShardedOptimizer::runs_of_groups() const {
  if (groups_.size() == 1) return {{0, parameters_.numel(), 0}};
  std::vector<Run> runs;
  for (const OwnedRange& range : ranges_) {
    const int64_t group = group_of_[static_cast<size_t>(range.parameter)];
    const bool goes_on =
        !runs.empty() && runs.back().group == group && runs.back().begin + runs.back().size == range.shard_begin;
    if (goes_on) {
      runs.back().size += range.size;
    } else {
      runs.push_back({range.shard_begin, range.size, group});
    }
  }
  return runs;
}

// Over all ranks. The norm is the same on all of them, so all see an element that is not finite and skip the step
// together.
double ShardedOptimizer::squares_of(const at::Tensor& gradient) {
  if (squared_norm_) return squared_norm_(gradient);
  const double squares = sum_of_squares(gradient);
  return c_.settings.stage > 0 ? sum_over_ranks(c_.comm, {squares})[0] : squares;
}

void ShardedOptimizer::update_with_lamb(const ShardTensors& shard, double scale) {
  const auto settings_of = [this](const OwnedRange& range) {
    return settings_now(group_of_[static_cast<size_t>(range.parameter)]);
  };
  // Lamb's trust ratio needs the norms of whole parameters. There are two sums for each parameter of the model, because
  // other ranks may hold parts of it.
  size_t parameters = 0;
  for (const GroupSlot& layer : c_.layout.groups()) parameters += layer.parameters.size();
  std::vector<double> squares(2 * parameters);
  const auto place_of = [](const OwnedRange& range) { return 2 * static_cast<size_t>(range.parameter); };
  for (const OwnedRange& range : ranges_) {
    const size_t at = place_of(range);
    const LambSquares part = lamb_moments(settings_of(range), scale, shard.narrow(range.shard_begin, range.size));
    squares[at] += part.param;
    squares[at + 1] += part.direction;
  }
  if (c_.settings.stage > 0) squares = sum_over_ranks(c_.comm, squares);
  for (const OwnedRange& range : ranges_) {
    const size_t at = place_of(range);
    const double ratio = lamb_trust_ratio(settings_of(range), {squares[at], squares[at + 1]});
    lamb_apply(settings_of(range), updates_ + 1, ratio, shard.narrow(range.shard_begin, range.size));
  }
}

// Rounds to the parameters' type, and copies to where they lie. In fp32 without offload they are one tensor.
void ShardedOptimizer::publish_master() {
  if (master_.is_same(parameters_)) return;
  parameters_.copy_(master_);
}

// Chunk by chunk, so that it takes little memory.
void ShardedOptimizer::adopt_parameters() {
  if (master_.is_same(parameters_)) return;
  constexpr int64_t kChunk = int64_t{1} << 20;  // elements
  for (int64_t at = 0; at < master_.numel(); at += kChunk) {
    const int64_t size = std::min(kChunk, master_.numel() - at);
    const at::Tensor master = master_.narrow(0, at, size);
    const at::Tensor edited = parameters_.narrow(0, at, size).to(master.device());
    const at::Tensor is_own = master.to(edited.scalar_type()).eq(edited);
    master.copy_(at::where(is_own, master, edited.to(at::kFloat)));
  }
}

std::vector<NamedShard> ShardedOptimizer::arrays() const {
  std::vector<NamedShard> arrays = {{"master", master_}};
  for (size_t i = 0; i < states_.size(); ++i) arrays.push_back({fmt::format("state{}", i + 1), states_[i]});
  return arrays;
}

Json ShardedOptimizer::state() const {
  return {{"updates", updates_},
          {"skipped_steps", skipped_steps_},
          {"loss_scaler", scaler_.state()},
          {"set_lr", set_rate_ ? Json(*set_rate_) : Json()}};
}

void ShardedOptimizer::restore(const Json& state) {
  updates_ = state.at("updates").get<int64_t>();
  skipped_steps_ = state.at("skipped_steps").get<int64_t>();
  scaler_.restore(state.at("loss_scaler"));
  const Json set_rate = state.value("set_lr", Json());
  set_rate_ = set_rate.is_null() ? std::nullopt : std::optional(set_rate.get<double>());
  publish_master();
}

}  // namespace dsat::trainer
