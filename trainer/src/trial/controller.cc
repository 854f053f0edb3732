// The loop over optimizer steps: train, report, validate, save, until the end or a request to stop.
// All ranks take the same path: what one of them decides is agreed on before it is acted on.
#include "trial/controller.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cstdio>

#include "comm/gather_json.h"
#include "dsat/random.h"
#include "dsat/trainer/pipeline.h"
#include "files/checkpoint_dir.h"
#include "report/metric_log.h"
#include "trial/trial_checkpoint.h"
#include "trial/trial_data.h"
#include "trial/trial_state.h"

namespace dsat::trainer {
namespace {

std::unique_ptr<TrialContext> make_context(World& world, const TrialOptions& options) {
  return std::make_unique<TrialContext>(
      std::make_unique<TrialContext::State>(world, options.experiment, options.tensorboard));
}

// Random numbers of a step, dropout's say, depend on the seed, the step and the rank's share of the data only, so that
// a run that was interrupted draws as one that was not.
void seed_step(uint64_t seed, int64_t batch, int64_t data_parallel_rank) {
  at::manual_seed(mix64(mix64(seed ^ static_cast<uint64_t>(batch) << 20) ^ static_cast<uint64_t>(data_parallel_rank)));
}

class Controller {
 public:
  Controller(World& world, const TrialLibrary& library, const TrialOptions& options)
      : world_(world), options_(options), context_(make_context(world, options)), state_(context_->state()) {
    if (world.rank() == 0 && !state_.tuning && !options.checkpoints.empty()) {
      require_writable("--checkpoints", options.checkpoints);
    }
    at::manual_seed(world.seed());  // every rank's model starts from the same values
    trial_ = library.make(*context_);
    check_engines();
    unit_ = context_->mpu();
    at::manual_seed(world.seed());  // data sets that are drawn are alike, too
    build_data();
    callbacks_ = trial_->build_callbacks();
    for (const auto& [name, callback] : callbacks_) {
      if (!callback) throw Error(fmt::format("build_callbacks: callback '{}' is null", name));
    }
    checkpoints_ = std::make_unique<TrialCheckpoints>(state_.tuning ? "" : options.checkpoints, library.name(), *trial_,
                                                      *context_, callbacks_);
  }

  void run();

 private:
  bool is_pipeline() const;
  void check_engines() const;
  void build_data();
  int64_t last_batch() const;
  void train_step();
  Metrics train_batch(int64_t epoch);
  void report();
  void validate();
  void save_checkpoint();
  bool stop_agreed();
  Json over_ranks(const MetricMean& mean, Phase phase);
  int64_t samples_of_a_micro_step() const;

  template <typename Hook, typename... Arguments>
  void each_callback(Hook hook, const Arguments&... arguments) {
    for (const auto& [name, callback] : callbacks_) ((*callback).*hook)(arguments...);
  }

  World& world_;
  const TrialOptions& options_;
  std::unique_ptr<TrialContext> context_;
  TrialContext::State& state_;
  std::unique_ptr<Trial> trial_;
  ModelParallelUnit unit_;
  TrialData training_, validation_;
  Callbacks callbacks_;
  std::unique_ptr<TrialCheckpoints> checkpoints_;
  std::unique_ptr<MetricLog> log_;  // of rank 0
  BatchIterator iterator_;          // over the training data
  MetricMean since_report_;
  bool validated_ = false;  // since the last step
};

bool Controller::is_pipeline() const {
  return dynamic_cast<const PipelineEngine*>(state_.engines.front().get()) != nullptr;
}

void Controller::check_engines() const {
  if (state_.engines.empty()) throw Error("the trial has no engine: call wrap_model_engine() in its constructor");
  for (const auto& engine : state_.engines) context_->reconcile_ds_config(*engine);
  if (is_pipeline() && state_.auto_accumulation) {
    throw Error(
        "the trial's engine is a pipeline, whose train_batch() trains a whole optimizer step: call "
        "disable_auto_grad_accumulation() in the trial's constructor");
  }
}

void Controller::build_data() {
  const bool builds = unit_.should_build_data_loader;
  training_ = prepare_data(*context_, builds ? trial_->build_training_data_loader() : nullptr,
                           "build_training_data_loader", /*training=*/true);
  const int64_t accumulation = state_.engines.front()->gradient_accumulation_steps();
  state_.batches_per_epoch = training_.length / accumulation;
  if (state_.batches_per_epoch == 0) {
    throw Error(
        fmt::format("the training data has {} micro batches for a rank, but a step takes {} "
                    "(gradient_accumulation_steps): use more data or smaller batches",
                    training_.length, accumulation));
  }
  if (state_.tuning) return;
  validation_ = prepare_data(*context_, builds ? trial_->build_validation_data_loader() : nullptr,
                             "build_validation_data_loader", /*training=*/false);
  if (is_pipeline() && validation_.length > 0 && validation_.length < accumulation) {
    throw Error(
        fmt::format("the validation data has {} micro batches for a rank, but a pipeline evaluates {} at once "
                    "(gradient_accumulation_steps): use more data or smaller batches",
                    validation_.length, accumulation));
  }
}

int64_t Controller::samples_of_a_micro_step() const {
  return state_.engines.front()->train_micro_batch_size_per_gpu() * unit_.data_parallel_world_size;
}

// In a tuning run the engine ends the training when it has measured enough.
int64_t Controller::last_batch() const {
  if (state_.tuning) return INT64_MAX;
  return options_.steps.value_or(options_.epochs.value_or(1) * state_.batches_per_epoch);
}

void Controller::run() {
  const TrialProgress progress = checkpoints_->enabled() ? checkpoints_->load() : TrialProgress();
  state_.batch = progress.batch;
  if (state_.batch > 0 && state_.batch >= last_batch() && world_.rank() == 0) {
    std::printf("nothing is left to train: the checkpoint in %s has made %lld steps of %lld; raise --steps\n",
                options_.checkpoints.c_str(), static_cast<long long>(state_.batch),
                static_cast<long long>(last_batch()));
  }
  iterator_ = training_.iterator(/*repeat=*/true, progress.samples / samples_of_a_micro_step());
  if (world_.rank() == 0) {
    log_ = std::make_unique<MetricLog>(*context_, state_.tuning ? "" : options_.metrics, progress.batch);
  }
  if (!state_.tuning) listen_for_stop_signal();  // what measures a trial ends it when it likes
  each_callback(&Callback::on_trial_startup, progress.batch);
  each_callback(&Callback::on_training_start);
  state_.reducers.reset(Phase::training);
  bool stop = false;
  for (const int64_t last = last_batch(); state_.batch < last && !stop; ++state_.batch) {
    train_step();
    stop = stop_agreed();
    const int64_t done = state_.batch + 1;
    const auto due = [&](int64_t every) { return every > 0 && done % every == 0; };
    const bool checkpoint_due = due(options_.checkpoint_every), ends = done == last || stop;
    const bool validation_due = options_.validate_every > 0 ? due(options_.validate_every) : context_->is_epoch_end();
    if (state_.tuning) continue;
    if (due(options_.report_every) || validation_due || checkpoint_due || ends) report();
    if (validation_due || done == last) validate();
    if (checkpoint_due || ends) save_checkpoint();
  }
  each_callback(&Callback::on_trial_shutdown);
}

Metrics Controller::train_batch(int64_t epoch) {
  int64_t before = 0, after = 0;
  for (const auto& engine : state_.engines) before += engine->micro_steps();
  Metrics metrics = trial_->train_batch(iterator_, epoch, state_.batch);
  for (const auto& engine : state_.engines) after += engine->micro_steps();
  if (after == before) throw Error("train_batch() trained nothing: call the engine's forward(), backward() and step()");
  return metrics;
}

void Controller::train_step() {
  const int64_t epoch = state_.batch / state_.batches_per_epoch;
  if (context_->is_epoch_start()) each_callback(&Callback::on_training_epoch_start, epoch);
  each_callback(&Callback::on_training_step_start, state_.batch);
  seed_step(world_.seed(), state_.batch, unit_.data_parallel_rank);
  const int64_t calls = state_.auto_accumulation ? state_.engines.front()->gradient_accumulation_steps() : 1;
  MetricMean of_step;
  for (int64_t i = 0; i < calls; ++i) {
    const Metrics metrics = train_batch(epoch);
    if (!unit_.should_report_metrics) continue;
    const Json json = to_json(metrics, "train_batch");
    of_step.add(json);
    since_report_.add(json);
  }
  validated_ = false;
  if (state_.profiler) state_.profiler->step();
  each_callback(&Callback::on_training_step_end, state_.batch, of_step.mean());
  if (context_->is_epoch_end()) each_callback(&Callback::on_training_epoch_end, epoch);
}

// What the ranks that report have seen, and what their reducers make of it.
Json Controller::over_ranks(const MetricMean& mean, Phase phase) {
  MetricMean all;
  for (const Json& partial : gather_json(world_.comm(), unit_.should_report_metrics ? mean.partial() : Json())) {
    if (!partial.is_null()) all.add_partial(partial);
  }
  Json metrics = all.mean();
  add_metrics(metrics, state_.reducers.reduce(phase, [&](const Json& mine) {
    std::vector<Json> reporting;
    for (Json& of_rank : gather_json(world_.comm(), unit_.should_report_metrics ? mine : Json())) {
      if (!of_rank.is_null()) reporting.push_back(std::move(of_rank));
    }
    return reporting;
  }));
  return metrics;
}

void Controller::report() {
  const Json metrics = over_ranks(since_report_, Phase::training);
  since_report_ = MetricMean();
  state_.reducers.reset(Phase::training);
  if (log_) log_->write("training", state_.batch, metrics);
}

void Controller::validate() {
  if (validated_) return;
  validated_ = true;
  each_callback(&Callback::on_validation_start);
  state_.reducers.reset(Phase::validation);
  for (const auto& engine : state_.engines) engine->eval();
  BatchIterator batches = validation_.iterator(/*repeat=*/false);
  MetricMean mean;
  {
    const c10::AutoGradMode no_graph(false);
    // A pipeline evaluates as many micro batches at once as it trains.
    const int64_t at_once = is_pipeline() ? state_.engines.front()->gradient_accumulation_steps() : 1;
    for (int64_t batch = 0; batch < validation_.length / at_once; ++batch) {
      const Metrics metrics = trial_->evaluate_batch(batches, batch);
      if (unit_.should_report_metrics) mean.add(to_json(metrics, "evaluate_batch"));
    }
  }
  for (const auto& engine : state_.engines) engine->train();
  const Json metrics = over_ranks(mean, Phase::validation);
  state_.reducers.reset(Phase::training);  // those of both phases have seen the validation
  if (log_) log_->write("validation", state_.batch, metrics);
  each_callback(&Callback::on_validation_end, metrics);
}

void Controller::save_checkpoint() {
  if (!checkpoints_->enabled()) return;
  // A rank that reads no data has taken none.
  const double taken = max_over_ranks(world_.comm(), {static_cast<double>(iterator_.taken())})[0];
  checkpoints_->save({state_.batch + 1, static_cast<int64_t>(taken) * samples_of_a_micro_step()});
}

// All ranks stop after the same step.
bool Controller::stop_agreed() {
  if (world_.size() == 1) return context_->get_stop_requested();
  return max_over_ranks(world_.comm(), {context_->get_stop_requested() ? 1.0 : 0.0})[0] > 0;
}

}  // namespace

void run_trial(World& world, const TrialLibrary& library, const TrialOptions& options) {
  Controller controller(world, library, options);
  controller.run();
}

}  // namespace dsat::trainer
