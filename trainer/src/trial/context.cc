// Implements what a trial asks of its context, over the state that the controller shares with it.
// In a tuning run the host's hyperparameters are written over the experiment's before the trial sees them.
#include "dsat/trainer/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/config_reader.h"
#include "dsat/config/json.h"
#include "dsat/trainer/deepspeed_config.h"
#include "dsat/trainer/pipeline.h"
#include "settings/experiment_file.h"
#include "trial/trial_state.h"
#include "watch/last_words.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t stop_signal = 0;
volatile std::sig_atomic_t stop_grace = 0;

std::string environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// The hyperparameters of a tuning run are in a file of the trial's own.
Json with_hyperparameters(Json experiment) {
  if (!experiment.is_object()) throw Error(fmt::format("an experiment is an object, not {}", experiment.dump()));
  Json& hparams = experiment["hyperparameters"];
  if (hparams.is_null()) hparams = Json::object();
  if (!hparams.is_object()) throw Error(fmt::format("hyperparameters is an object, not {}", hparams.dump()));
  hparams = without_const_wrappers(hparams);
  if (const std::string file = environment("DSAT_HPARAMS"); !file.empty()) {
    config::overwrite(hparams, without_const_wrappers(config::load_file(file)));
  }
  return experiment;
}

int64_t as_samples(const EngineSizes& sizes) {
  return sizes.train_micro_batch_size_per_gpu * sizes.gradient_accumulation_steps * sizes.data_parallel_world_size;
}

}  // namespace

// A launcher of ours ends its ranks before the alarm does.
void listen_for_stop_signal(int64_t grace_s) {
  constexpr int kAfterLauncher = 5;  // seconds
  stop_grace = static_cast<std::sig_atomic_t>(grace_s) + kAfterLauncher;
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    if (stop_signal != 0) {
      ::signal(signal, SIG_DFL);
      ::raise(signal);
    }
    stop_signal = 1;
    ::alarm(static_cast<unsigned>(stop_grace));
  };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = [](int) {
    constexpr char kReason[] = "SIGTERM: the step under way has not ended within --stop-grace";
    end_with(kReason, sizeof kReason - 1);
  };
  ::sigaction(SIGALRM, &action, nullptr);
}

bool stop_signalled() { return stop_signal != 0; }

TrialContext::State::State(World& world, Json experiment, fs::path tensorboard)
    : world(world),
      experiment(with_hyperparameters(std::move(experiment))),
      tuning(is_enabled(world.config().is_object() ? world.config() : Json::object(), "autotuning")),
      tensorboard_logging(!tuning),
      tensorboard(std::move(tensorboard)) {
  if (this->tensorboard.empty()) this->tensorboard = fs::path(environment("DSAT_TRIAL_DIR")) / "tensorboard";
}

const ModelEngine& TrialContext::State::first_engine(const char* asked) const {
  if (engines.empty()) throw Error(fmt::format("{}: is the engine's; call wrap_model_engine() before", asked));
  return *engines.front();
}

TrialContext::TrialContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrialContext::~TrialContext() = default;

std::unique_ptr<TrialContext> TrialContext::from_config(World& world, const Json& experiment) {
  Json object = experiment.is_string() ? load_experiment(experiment.get<std::string>()) : experiment;
  return std::make_unique<TrialContext>(std::make_unique<State>(world, std::move(object), fs::path()));
}

void TrialContext::add_engine(std::shared_ptr<ModelEngine> engine, const std::optional<ModelParallelUnit>& unit) {
  State& s = *state_;
  if (!engine) throw Error("wrap_model_engine: the engine is null");
  for (const auto& other : s.engines) {
    if (other == engine) throw Error("wrap_model_engine: this engine is wrapped already; wrap each engine once");
    if (other->train_batch_size() != engine->train_batch_size() ||
        other->gradient_accumulation_steps() != engine->gradient_accumulation_steps()) {
      throw Error(fmt::format(
          "wrap_model_engine: this engine trains {} samples in {} micro steps, another one {} in {}: make the "
          "two agree",
          engine->train_batch_size(), engine->gradient_accumulation_steps(), other->train_batch_size(),
          other->gradient_accumulation_steps()));
    }
  }
  const bool has_unit = s.mpu.has_value() && !s.mpu_is_the_trials;
  const bool same_unit = unit && s.mpu && unit->data_parallel_rank == s.mpu->data_parallel_rank &&
                         unit->data_parallel_world_size == s.mpu->data_parallel_world_size;
  if (!s.engines.empty() && !s.mpu_is_the_trials && unit.has_value() != has_unit && !same_unit) {
    throw Error(
        "wrap_model_engine: one engine is model-parallel and another is not: use one kind, or call set_mpu first");
  }
  if (has_unit && unit && !same_unit) {
    throw Error(
        "wrap_model_engine: two engines are spread over the ranks in different ways: use one model-parallel unit");
  }
  if (unit && !s.mpu_is_the_trials) s.mpu = unit;
  s.engines.push_back(std::move(engine));
}

void TrialContext::set_mpu(const ModelParallelUnit& unit) {
  const int64_t size = unit.data_parallel_world_size, rank = unit.data_parallel_rank;
  if (state_->mpu_is_the_trials) throw Error("set_mpu: called twice, but all engines share one unit: call it once");
  if (size < 1 || size > state_->world.size() || rank < 0 || rank >= size) {
    throw Error(fmt::format(
        "set_mpu: data-parallel rank {} of {} in a world of {} ranks; expected a rank below the size, and no "
        "more than the ranks",
        rank, size, state_->world.size()));
  }
  state_->mpu = unit;
  state_->mpu_is_the_trials = true;
}

ModelParallelUnit TrialContext::mpu() const {
  if (state_->mpu) return *state_->mpu;
  return {state_->world.rank(), state_->world.size(), true, true};
}

const std::vector<std::shared_ptr<ModelEngine>>& TrialContext::models() const { return state_->engines; }

int64_t TrialContext::train_micro_batch_size_per_gpu() const {
  return state_->first_engine("train_micro_batch_size_per_gpu").train_micro_batch_size_per_gpu();
}

int64_t TrialContext::num_micro_batches_per_slot() const {
  return state_->first_engine("num_micro_batches_per_slot").gradient_accumulation_steps();
}

bool TrialContext::use_pipeline_parallel() const {
  return dynamic_cast<const PipelineEngine*>(&state_->first_engine("use_pipeline_parallel")) != nullptr;
}

void TrialContext::reconcile_ds_config(const ModelEngine& engine) const {
  EngineSizes sizes;
  sizes.train_batch_size = engine.train_batch_size();
  sizes.train_micro_batch_size_per_gpu = engine.train_micro_batch_size_per_gpu();
  sizes.gradient_accumulation_steps = engine.gradient_accumulation_steps();
  sizes.data_parallel_world_size = mpu().data_parallel_world_size;
  sizes.world_size = state_->world.size();
  if (sizes.train_batch_size != as_samples(sizes)) {
    throw Error(fmt::format(
        "the engine's train_batch_size is {}, but micro batches of {} in {} micro steps on {} data-parallel "
        "ranks are {}: make the two agree",
        sizes.train_batch_size, sizes.train_micro_batch_size_per_gpu, sizes.gradient_accumulation_steps,
        sizes.data_parallel_world_size, as_samples(sizes)));
  }
  if (!state_->tuning) reconcile_sizes(state_->experiment, sizes);
}

void TrialContext::disable_auto_grad_accumulation() { state_->auto_accumulation = false; }
void TrialContext::disable_dataset_reproducibility_checks() { state_->reproducibility_checks = false; }

std::shared_ptr<MetricReducer> TrialContext::wrap_reducer(std::shared_ptr<MetricReducer> reducer,
                                                          std::optional<std::string> name, bool for_training,
                                                          bool for_validation) {
  state_->reducers.add(reducer, std::move(name), for_training, for_validation);
  return reducer;
}

std::shared_ptr<MetricReducer> TrialContext::wrap_reducer(ReduceFunction function, std::optional<std::string> name,
                                                          bool for_training, bool for_validation) {
  return wrap_reducer(make_reducer(std::move(function)), std::move(name), for_training, for_validation);
}

at::Device TrialContext::device() const { return state_->world.device(); }
at::Tensor TrialContext::to_device(const at::Tensor& tensor) const { return tensor.to(device()); }

Tensors TrialContext::to_device(const Tensors& tensors) const {
  Tensors moved;
  for (const at::Tensor& tensor : tensors) moved.push_back(to_device(tensor));
  return moved;
}

std::map<std::string, at::Tensor> TrialContext::to_device(const std::map<std::string, at::Tensor>& tensors) const {
  std::map<std::string, at::Tensor> moved;
  for (const auto& [name, tensor] : tensors) moved[name] = to_device(tensor);
  return moved;
}

int64_t TrialContext::current_train_batch() const { return state_->batch; }

int64_t TrialContext::current_train_epoch() const {
  if (state_->batches_per_epoch > 0) return state_->batch_in_epochs() / state_->batches_per_epoch;
  throw Error(
      "current_train_epoch: the length of an epoch is known once the training data's loader is built: ask later, in "
      "train_batch() say");
}

int64_t TrialContext::get_initial_batch() const { return state_->initial_batch; }

bool TrialContext::is_epoch_start() const {
  return state_->batches_per_epoch > 0 && state_->batch_in_epochs() % state_->batches_per_epoch == 0;
}

bool TrialContext::is_epoch_end() const {
  return state_->batches_per_epoch > 0 && (state_->batch_in_epochs() + 1) % state_->batches_per_epoch == 0;
}

bool TrialContext::get_stop_requested() const { return state_->stop_requested || stop_signalled(); }
void TrialContext::set_stop_requested(bool stop_requested) { state_->stop_requested = stop_requested; }

World& TrialContext::world() const { return state_->world; }
bool TrialContext::is_tuning() const { return state_->tuning; }

Json TrialContext::get_deepspeed_config() const {
  const Json& hparams = get_hparams();
  const auto found = hparams.find("overwrite_deepspeed_args");
  const Json overwrites = found == hparams.end() || found->is_null() ? Json::object() : *found;
  if (state_->tuning) return overwrite_deepspeed_config(overwrites, state_->world.config());
  if (!state_->world.config().is_null()) return overwrite_deepspeed_config(state_->world.config(), overwrites);
  if (!hparams.contains("deepspeed_config")) {
    throw Error("no DeepSpeed configuration: give --deepspeed_config FILE, or the hyperparameter deepspeed_config");
  }
  return overwrite_deepspeed_config(hparams["deepspeed_config"], overwrites);
}

Json TrialContext::get_hparam(const std::string& name) const {
  const Json& hparams = get_hparams();
  const auto found = hparams.find(name);
  if (found == hparams.end())
    throw Error(fmt::format("no hyperparameter '{0}': set hyperparameters.{0} in the experiment", name));
  return *found;
}

const Json& TrialContext::get_hparams() const { return state_->experiment.at("hyperparameters"); }
Json TrialContext::get_data_config() const { return state_->experiment.value("data", Json::object()); }
const Json& TrialContext::get_experiment_config() const { return state_->experiment; }

std::string TrialContext::get_experiment_id() const {
  // DSAT_TRIAL_DIR is STUDY/trials/<id>.
  const fs::path folder = environment("DSAT_TRIAL_DIR");
  if (!folder.empty()) return folder.parent_path().parent_path().filename().string();
  const auto name = state_->experiment.find("name");
  return name != state_->experiment.end() && name->is_string() ? name->get<std::string>() : "local";
}

std::string TrialContext::get_trial_id() const {
  const std::string id = environment("DSAT_TRIAL_ID");
  return id.empty() ? "local" : id;
}

uint64_t TrialContext::get_trial_seed() const { return state_->world.seed(); }

void TrialContext::set_enable_tensorboard_logging(bool enable) { state_->tensorboard_logging = enable; }
bool TrialContext::get_enable_tensorboard_logging() const { return state_->tensorboard_logging; }
fs::path TrialContext::get_tensorboard_path() const { return state_->tensorboard; }

EventWriter& TrialContext::get_tensorboard_writer() {
  if (!state_->writer) {
    state_->writer = std::make_unique<EventWriter>(state_->tensorboard, fmt::format(".rank{}", state_->world.rank()));
  }
  return *state_->writer;
}

void TrialContext::set_profiler(int64_t wait, int64_t warmup, int64_t active, int64_t repeat,
                                const ProfilerOptions& options) {
  state_->profiler.reset();  // the old one stops recording first
  state_->profiler = std::make_unique<Profiler>(state_->tensorboard, fmt::format("rank{}", state_->world.rank()),
                                                ProfilerSchedule{wait, warmup, active, repeat}, options);
}

}  // namespace dsat::trainer
