// ModelEngine (dsat/trainer/engine.h): counts micro steps and optimizer steps, checks the order of the calls, and
// passes them on to a ZeroEngine. Every call is also reported to the tuning run, which measures the steps of a tuning
// trial.
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/runtime/jit_exception.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "autograd/parameter_use.h"
#include "base/config_reader.h"
#include "base/error_text.h"
#include "device/device_memory.h"
#include "dsat/base/units.h"
#include "dsat/trainer/engine.h"
#include "measure/tuning_run.h"
#include "settings/settings.h"
#include "weights/check_weights.h"
#include "weights/weight_reader.h"
#include "weights/weight_writer.h"
#include "zero/model_parts.h"
#include "zero/zero_engine.h"

namespace dsat::trainer {
namespace {

Settings settings_for(World& world, const Json& config) {
  SettingsResult read = read_settings(config, world.size(), fp16_on(world.device().is_cpu(), world.fp16_as_bf16()));
  // The program has printed the warnings of its own configuration already.
  if (world.rank() == 0 && config != world.config()) {
    for (const std::string& warning : read.warnings) {
      std::fputs(fmt::format("{}: warning: {}\n", world.program(), warning).c_str(), stderr);
    }
  }
  return std::move(read.settings);
}

Settings settings_of_whole_model(World& world, const Json& config) {
  Settings settings = settings_for(world, config);
  if (settings.pipeline.stages > 1) {
    throw Error(
        fmt::format("pipeline.stages is {}: this model is no chain of layers that could be cut; make it a "
                    "PipelineModule, or set it to 1",
                    settings.pipeline.stages));
  }
  return settings;
}

// A module of the user's own has no layers that the engine knows.
void warn_of_interval(const World& world, const Settings& settings, const ModelParts& parts) {
  if (settings.pipeline.checkpoint_interval == 0 || parts.recomputed_segments > 0 || world.rank() > 0) return;
  std::fputs(
      fmt::format("{}: warning: pipeline.activation_checkpoint_interval has no effect: this model is no chain of "
                  "layers; call recompute() in its forward, or make it a PipelineModule\n",
                  world.program())
          .c_str(),
      stderr);
}

// Before the layout is made from the groups.
ModelParts& with_persistent_groups(ModelParts& parts, const Settings& settings) {
  if (settings.stage == 3 && settings.persistence_threshold > 0) {
    make_small_ones_persistent(parts, settings.persistence_threshold, settings.model_persistence_threshold);
  }
  return parts;
}

ModelInfo info_of(const ModelParts& parts, const Layout& layout) {
  ModelInfo info;
  info.num_params = layout.num_params();
  info.num_frozen = parts.num_frozen;
  info.largest_layer_params = layout.largest_group();
  for (const GroupSlot& group : layout.groups()) {
    for (const ParameterSlot& parameter : group.parameters) info.count_small(parameter.size);
  }
  info.recomputed_segments = parts.recomputed_segments;
  info.activation_peaks = parts.activation_peaks;
  return info;
}

}  // namespace

class ModelEngine::Impl {
 public:
  // For a whole model, with a ZeroEngine of its own.
  Impl(World& own_world, const Json& own_config, const std::shared_ptr<ModelParts>& parts)
      : world(own_world),
        config(own_config),
        settings(settings_of_whole_model(world, config)),
        own_zero(std::make_unique<ZeroEngine>(with_persistent_groups(*parts, settings), settings, world.comm(),
                                              world.device(), world.seed())),
        zero(*own_zero),
        info(info_of(*parts, zero.layout())),
        tuning(world, settings, info),
        set_mode(parts->train) {
    warn_of_interval(world, settings, *parts);
  }
  // For a stage of a pipeline, which trains its layers with its own ZeroEngine.
  Impl(World& own_world, const Json& own_config, ZeroEngine& part, int of_stage, int of_stages,
       const ModelInfo& of_whole, std::function<void(bool)> mode)
      : world(own_world),
        config(own_config),
        settings(settings_for(world, config)),
        zero(part),
        stage(of_stage),
        stages(of_stages),
        info(of_whole),
        tuning(world, settings, info),
        set_mode(std::move(mode)) {}

  // A step in which nothing was learnt ends here: another engine's loss went through a forward of this one.
  void require_between_steps(const char* call) {
    if (in_step && !has_gradients) {
      zero.abandon_step();
      in_step = false;
    }
    if (in_step) throw Error(fmt::format("{} within an optimizer step; call it after the step() that ends it", call));
  }
  // For what is no part of a pipeline, between steps.
  ZeroEngine& zero_between_steps(const char* call) {
    require_between_steps(call);
    if (stages > 1)
      throw Error(fmt::format("{} of a pipeline; save a checkpoint, and dsat-trial export writes it", call));
    return zero;
  }
  // The same, and one line about buffers that are not the same everywhere.
  ZeroEngine& weights_for(const char* call) {
    ZeroEngine& whole = zero_between_steps(call);
    const std::string buffer = whole.differing_buffer();
    if (!buffer.empty() && world.rank() == 0) {
      std::fputs(fmt::format("{}: warning: {} has rank 0's buffers; other ranks have other values of {}\n",
                             world.program(), call, buffer)
                     .c_str(),
                 stderr);
    }
    return whole;
  }
  CheckpointScope scope() const { return {world.comm(), stage, stages}; }
  bool is_boundary() const { return forced_boundary.value_or((micro_steps + 1) % settings.batch.accumulation == 0); }

  World& world;
  Json config;
  Settings settings;
  std::unique_ptr<ZeroEngine> own_zero;  // none for a part
  ZeroEngine& zero;
  int stage = 0, stages = 1;  // of a pipeline
  ModelInfo info;
  TuningRun tuning;
  std::function<void(bool)> set_mode;
  ParameterUse used{zero.layout(), zero.parameters()};

  int64_t micro_steps = 0, global_steps = 0;
  std::optional<bool> forced_boundary;
  bool is_training = true;
  bool in_step = false;        // an optimizer step has begun
  bool in_evaluation = false;  // a forward that no step follows is under way
  bool has_gradients = false;  // a backward has been in this step
  bool is_reduced = false;     // the step's gradients are summed
};

ModelEngine::ModelEngine(World& world, const Json& config, std::shared_ptr<ModelParts> parts)
    : impl_(std::make_unique<Impl>(world, config, parts)) {}
ModelEngine::ModelEngine(World& world, const Json& config, ZeroEngine& zero, int stage, int stages,
                         const ModelInfo& info, std::function<void(bool)> set_mode)
    : impl_(std::make_unique<Impl>(world, config, zero, stage, stages, info, std::move(set_mode))) {}
ModelEngine::~ModelEngine() = default;

TuningRun& ModelEngine::tuning() { return impl_->tuning; }

// For a pipeline, whose micro steps the schedule makes.
void ModelEngine::count_whole_step() {
  impl_->micro_steps += impl_->settings.batch.accumulation;
  ++impl_->global_steps;
}

// A forward is an evaluation in evaluation mode, or where the caller keeps no graph: nothing is trained then. At stage
// 3 it still gathers parameters, so outside of an optimizer step it needs a begin and an end of its own.
void ModelEngine::begin_forward() {
  Impl& i = *impl_;
  i.in_evaluation = !i.is_training || !c10::GradMode::is_enabled();
  if (i.in_evaluation) {
    if (!i.in_step) i.zero.begin_evaluation();
    i.used.begin();
    return;
  }
  if (!i.in_step) i.zero.begin_step();
  i.in_step = true;
  i.zero.begin_micro_step();
  i.used.begin();
  i.tuning.forward_begins();
}

void ModelEngine::end_forward() {
  Impl& i = *impl_;
  i.used.end();
  i.zero.end_forward();
  if (!i.in_evaluation) return i.tuning.forward_ended();
  if (!i.in_step) i.zero.end_evaluation();
}

// LibTorch says what does not fit, but not where. What the device refused is a failure of another kind.
void ModelEngine::forward_failed() {
  Impl& i = *impl_;
  i.used.end();
  try {
    throw;
  } catch (const c10::Error& error) {
    if (out_of_memory() || dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) throw;
    i.zero.end_forward();  // throws the cause if a gathering has failed
    throw Error(DSAT_INTERNAL,
                fmt::format("forward failed {}: {}", i.used.where(), libtorch_reason(error.what_without_backtrace())));
  } catch (const torch::jit::JITException& error) {
    throw Error(DSAT_INTERNAL, fmt::format("forward failed {}: {}", i.used.where(), libtorch_reason(error.what())));
  }
}

void ModelEngine::backward(const at::Tensor& loss) { trainer::backward(loss, {this}); }

// The loss is divided by the micro steps of an optimizer step here, so that their sum is the mean over the batch.
void backward(const at::Tensor& loss, const std::vector<ModelEngine*>& engines) {
  if (engines.empty()) throw Error("backward() of no engine");
  if (loss.numel() != 1) {
    throw Error(fmt::format("backward() needs a scalar loss; this one has {} elements", loss.numel()));
  }
  const ModelEngine& first = *engines.front();
  std::vector<ZeroEngine::Part> parts;
  for (const ModelEngine* engine : engines) {
    const ModelEngine::Impl& i = *engine->impl_;
    if (!i.in_step) throw Error("backward() without a forward() in training mode before it");
    if (i.is_reduced) throw Error("backward() twice at a gradient accumulation boundary; call step() between them");
    if (engine->gradient_accumulation_steps() != first.gradient_accumulation_steps() ||
        engine->loss_scale() != first.loss_scale()) {
      throw Error("backward() of engines with different gradient_accumulation_steps or loss scales; give each a loss");
    }
    parts.push_back({&i.zero, i.is_boundary()});
  }
  for (ModelEngine* engine : engines) engine->impl_->tuning.backward_begins();
  try {
    ZeroEngine::run_backward(loss, 1.0 / static_cast<double>(first.gradient_accumulation_steps()), parts);
  } catch (const c10::Error& error) {
    if (std::strstr(error.what(), "second time") == nullptr) throw;
    throw Error(
        "backward() of a loss whose graph an earlier backward() has freed; if it trains several engines, call "
        "backward(loss, {&one, &other}) once");
  }
  for (ModelEngine* engine : engines) {
    engine->impl_->has_gradients = true;
    engine->impl_->is_reduced = engine->impl_->is_boundary();
  }
  for (ModelEngine* engine : engines) engine->impl_->tuning.backward_ended(loss);
}

// Between boundaries it only counts. The tuning run is informed after the counts, because it may end the training.
void ModelEngine::step() {
  Impl& i = *impl_;
  const bool is_update = i.is_boundary();
  if (is_update && !i.is_reduced) {
    throw Error("step() at a gradient accumulation boundary without a backward() before it");
  }
  i.tuning.step_begins();
  ++i.micro_steps;
  if (is_update) {
    i.zero.step();
    ++i.global_steps;
    i.in_step = i.is_reduced = i.has_gradients = false;
  }
  i.tuning.step_ended(is_update, i.zero.optimizer().skipped_steps(), i.zero.optimizer().gradient_norm());
}

void ModelEngine::edit_parameters(const std::function<void()>& change, const std::vector<at::Tensor>& which) {
  Impl& i = *impl_;
  i.zero_between_steps("edit_parameters()").edit(which, change);
}

std::vector<std::pair<std::string, at::Tensor>> ModelEngine::full_state_dict() {
  std::vector<std::pair<std::string, at::Tensor>> named;
  ZeroEngine& zero = impl_->weights_for("full_state_dict()");
  const std::vector<WeightSpec> specs = zero.weight_specs();
  size_t next = 0;
  zero.collect_weights([&](const at::Tensor& values) {
    const WeightSpec& spec = specs[next++];
    named.emplace_back(spec.name, values);
    for (const std::string& alias : spec.aliases) named.emplace_back(alias, values);
  });
  return named;
}

void ModelEngine::save_weights(const std::string& out) {
  ZeroEngine& zero = impl_->weights_for("save_weights()");
  std::unique_ptr<WeightWriter> writer;
  if (world().rank() == 0) writer = open_weight_writer(out, zero.weight_specs());
  zero.collect_weights([&](const at::Tensor& values) { writer->write(values); });
  if (writer) writer->finish();
  world().comm().barrier();
}

// Only rank 0 reads. What is wrong with the file is found before a value is changed.
void ModelEngine::load_weights(const std::string& file) {
  ZeroEngine& zero = impl_->zero_between_steps("load_weights()");
  std::unique_ptr<WeightReader> reader;
  if (world().rank() == 0) {
    reader = open_weight_reader(file);
    for (const std::string& extra : check_weights(file, reader->specs(), zero.weight_specs())) {
      std::fputs(fmt::format("{}: warning: {} has {}, which the model does not have\n", world().program(), file, extra)
                     .c_str(),
                 stderr);
    }
  }
  zero.spread_weights([&](const WeightSpec& spec) { return reader->read(spec.name); });
}

// Within an optimizer step gradients are accumulated, which a checkpoint does not keep.
void ModelEngine::save_checkpoint(const std::string& dir, const std::string& tag, const Json& client_state) {
  Impl& i = *impl_;
  i.require_between_steps("save_checkpoint()");
  const Json counts = {{"global_steps", i.global_steps},
                       {"micro_steps", i.micro_steps},
                       {"accumulation", i.settings.batch.accumulation}};
  i.zero.save(dir, tag, {{"engine", counts}, {"client", client_state}}, i.scope());
}

Json ModelEngine::load_checkpoint(const std::string& dir, const std::string& tag) {
  Impl& i = *impl_;
  i.require_between_steps("load_checkpoint()");
  const Json state = i.zero.load(dir, tag, i.scope());
  const Json& counts = state.at("engine");
  i.global_steps = counts.at("global_steps").get<int64_t>();
  // With another accumulation the same batches are cut into other micro steps.
  const bool is_cut_alike = counts.at("accumulation") == i.settings.batch.accumulation;
  i.micro_steps =
      is_cut_alike ? counts.at("micro_steps").get<int64_t>() : i.global_steps * i.settings.batch.accumulation;
  i.tuning.resume(i.global_steps);
  return state.at("client");
}

bool ModelEngine::is_gradient_accumulation_boundary() const { return impl_->is_boundary(); }
void ModelEngine::set_gradient_accumulation_boundary(bool is_boundary) { impl_->forced_boundary = is_boundary; }

void ModelEngine::train(bool on) {
  impl_->is_training = on;
  impl_->set_mode(on);
}

int64_t ModelEngine::train_batch_size() const { return impl_->settings.batch.train_batch; }
int64_t ModelEngine::train_micro_batch_size_per_gpu() const { return impl_->settings.batch.micro_batch; }
int64_t ModelEngine::gradient_accumulation_steps() const { return impl_->settings.batch.accumulation; }
int64_t ModelEngine::global_steps() const { return impl_->global_steps; }
int64_t ModelEngine::micro_steps() const { return impl_->micro_steps; }
int64_t ModelEngine::num_params() const { return impl_->info.num_params; }
int64_t ModelEngine::skipped_steps() const { return impl_->zero.optimizer().skipped_steps(); }
double ModelEngine::get_lr() const { return impl_->zero.optimizer().learning_rate(); }
void ModelEngine::set_lr(double lr) {
  if (!std::isfinite(lr) || lr < 0) throw Error(fmt::format("set_lr({}): expected a number from 0 on", lr));
  impl_->zero.optimizer().set_learning_rate(lr);
}
void ModelEngine::set_lr_schedule(std::function<double(int64_t)> schedule) {
  impl_->zero.optimizer().set_schedule(std::move(schedule));
}
double ModelEngine::loss_scale() const { return impl_->zero.optimizer().loss_scale(); }
std::optional<double> ModelEngine::get_global_grad_norm() const { return impl_->zero.optimizer().gradient_norm(); }
int ModelEngine::zero_optimization_stage() const { return impl_->settings.stage; }
at::ScalarType ModelEngine::dtype() const { return impl_->zero.dtype(); }
const Json& ModelEngine::config() const { return impl_->config; }
World& ModelEngine::world() { return impl_->world; }

}  // namespace dsat::trainer
