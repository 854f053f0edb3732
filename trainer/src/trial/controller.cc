// The loop over optimizer steps: train, report, validate, save, until the end or a request to stop.
// All ranks take the same path: what one of them decides is agreed on before it is acted on.
#include "trial/controller.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error_text.h"
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

// The pipeline stage of this rank; 0 without a pipeline.
int stage_of(const ModelEngine& engine) {
  const auto* const pipeline = dynamic_cast<const PipelineEngine*>(&engine);
  return pipeline != nullptr ? pipeline->stage() : 0;
}

// Random numbers of a step, dropout's say, depend on the seed, the step, the rank's share of the data and its pipeline
// stage only, so that a run that was interrupted draws as one that was not.
void seed_step(uint64_t seed, int64_t batch, int64_t data_parallel_rank, int stage) {
  const auto place = static_cast<uint64_t>(data_parallel_rank) ^ static_cast<uint64_t>(stage) << 32;
  at::manual_seed(mix64(mix64(seed ^ static_cast<uint64_t>(batch) << 20) ^ place));
}

std::string keys_text(const Json& metrics) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : metrics.items()) keys.push_back(key);
  return fmt::format("{{{}}}", fmt::join(keys, ", "));
}

// What evaluate_batch() gave in two places: a mean over some of the batches would pass for one of all.
void check_same_keys(const Json& one, const std::string& where, const Json& other, const std::string& elsewhere) {
  const std::string keys = keys_text(one), others = keys_text(other);
  if (keys == others) return;
  throw Error(
      fmt::format("evaluate_batch() gave the metrics {} for {} and {} for {}: give the same ones for every batch", keys,
                  where, others, elsewhere));
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
    load_weights();
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
  void check_engines() const;
  void load_weights();
  void build_data();
  int64_t last_batch() const;
  void start();
  int64_t place_in_data(const TrialProgress& progress);
  void train();
  void shut_down_after_exception();
  void train_step();
  Metrics train_batch(int64_t epoch);
  std::vector<int64_t> micro_steps() const;
  void check_trained(const std::vector<int64_t>& before) const;
  void report();
  void validate();
  std::vector<Json> evaluate_batches();
  void check_ranks_alike(const Json& mine);
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
  std::vector<Json> steps_since_report_;  // each one's metrics on this rank
  bool validated_ = false;                // since the last step
};

void Controller::check_engines() const {
  if (state_.engines.empty()) throw Error("the trial has no engine: call wrap_model_engine() in its constructor");
  for (const auto& engine : state_.engines) context_->reconcile_ds_config(*engine);
  if (context_->use_pipeline_parallel() && state_.auto_accumulation) {
    throw Error(
        "the trial's engine is a pipeline, whose train_batch() trains a whole optimizer step: call "
        "disable_auto_grad_accumulation() in the trial's constructor");
  }
}

void Controller::load_weights() {
  if (options_.weights.empty()) return;
  if (state_.engines.size() > 1) {
    throw Error("--weights is for a trial with one engine: call load_weights() of each in the trial's constructor");
  }
  state_.engines.front()->load_weights(options_.weights);
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
  if (context_->use_pipeline_parallel() && validation_.length > 0 && validation_.length < accumulation) {
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
  return options_.steps.value_or(options_.epochs.value_or(1) * state_.batches_per_epoch - state_.epoch_shift);
}

void Controller::run() {
  start();
  try {
    train();
  } catch (...) {
    shut_down_after_exception();
    throw;
  }
  each_callback(&Callback::on_trial_shutdown);
}

// The exception under way tells what went wrong; what this hook throws in its wake does not take its place.
void Controller::shut_down_after_exception() {
  for (const auto& [name, callback] : callbacks_) {
    try {
      callback->on_trial_shutdown();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: warning: on_trial_shutdown of callback '%s' failed: %s\n", world_.program().c_str(),
                   name.c_str(), error_text(error).c_str());
    }
  }
}

// Where a run goes on, in micro batches of this rank; sets the place in the epochs, too. On another number of ranks a
// pass and an epoch have other lengths: whole ones count as such, and of the one under way the share that is done. A
// micro batch that was begun is taken again.
int64_t Controller::place_in_data(const TrialProgress& progress) {
  const int64_t of_epoch = progress.batch_of_epoch * state_.batches_per_epoch / progress.batches_per_epoch;
  state_.epoch_shift = progress.epoch * state_.batches_per_epoch + of_epoch - progress.batch;
  const int64_t of_pass = progress.samples_of_pass / samples_of_a_micro_step();
  return progress.pass * training_.length + std::min(of_pass, training_.length);
}

void Controller::start() {
  const TrialProgress progress = checkpoints_->enabled() ? checkpoints_->load() : TrialProgress();
  state_.batch = state_.initial_batch = progress.batch;
  const int64_t first = place_in_data(progress);
  if (state_.batch > 0 && state_.batch >= last_batch() && world_.rank() == 0) {
    std::printf("nothing is left to train: the checkpoint in %s has made %lld steps of %lld; raise --steps\n",
                options_.checkpoints.c_str(), static_cast<long long>(state_.batch),
                static_cast<long long>(last_batch()));
  }
  iterator_ = training_.iterator(/*repeat=*/true, first);
  if (world_.rank() == 0) {
    log_ = std::make_unique<MetricLog>(*context_, state_.tuning ? "" : options_.metrics, progress.batch);
  }
  if (!state_.tuning) listen_for_stop_signal(world_.stop_grace_s());  // what measures a trial ends it when it likes
  each_callback(&Callback::on_trial_startup, progress.batch);
}

void Controller::train() {
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
}

// Those that each engine has made so far.
std::vector<int64_t> Controller::micro_steps() const {
  std::vector<int64_t> made;
  for (const auto& engine : state_.engines) made.push_back(engine->micro_steps());
  return made;
}

Metrics Controller::train_batch(int64_t epoch) {
  const std::vector<int64_t> before = micro_steps();
  Metrics metrics = trial_->train_batch(iterator_, epoch, state_.batch);
  if (micro_steps() == before) {
    throw Error("train_batch() trained nothing: call the engine's forward(), backward() and step()");
  }
  return metrics;
}

// An engine that ends a step between two updates would add this step's gradients to the next one. `before`: each
// engine's micro steps when the step began.
void Controller::check_trained(const std::vector<int64_t>& before) const {
  for (size_t i = 0; i < before.size(); ++i) {
    const ModelEngine& engine = *state_.engines[i];
    const int64_t trained = engine.micro_steps() - before[i], expected = engine.gradient_accumulation_steps();
    // A loop of the trial's own may update an engine several times in a step, as some adversarial trainings do.
    const bool is_whole = state_.auto_accumulation ? trained == 0 || trained == expected : trained % expected == 0;
    if (is_whole) continue;
    const std::string who = before.size() > 1 ? fmt::format(" with engine {}", i) : "";
    const std::string amount = trained < expected
                                   ? fmt::format("{} of the {} micro batches", trained, expected)
                                   : fmt::format("{} micro batches instead of the {}", trained, expected);
    const char* const remedy =
        state_.auto_accumulation
            ? "each call trains one, with the engine's step(), if the engine trains in this step at all; for another "
              "order call disable_auto_grad_accumulation()"
            : "after disable_auto_grad_accumulation() it trains all of them, each with the engine's step()";
    throw Error(fmt::format("train_batch() trained {} of step {}{} (gradient_accumulation_steps): {}", amount,
                            state_.batch, who, remedy));
  }
}

void Controller::train_step() {
  const int64_t epoch = state_.batch_in_epochs() / state_.batches_per_epoch;
  if (context_->is_epoch_start()) each_callback(&Callback::on_training_epoch_start, epoch);
  each_callback(&Callback::on_training_step_start, state_.batch);
  seed_step(world_.seed(), state_.batch, unit_.data_parallel_rank, stage_of(*state_.engines.front()));
  const int64_t calls = state_.auto_accumulation ? state_.engines.front()->gradient_accumulation_steps() : 1;
  const std::vector<int64_t> before = micro_steps();
  MetricMean of_step;
  for (int64_t i = 0; i < calls; ++i) {
    const Metrics metrics = train_batch(epoch);
    if (!unit_.should_report_metrics) continue;
    const Json json = to_json(metrics, fmt::format("train_batch in step {}", state_.batch));
    of_step.add(json);
    since_report_.add(json);
  }
  check_trained(before);
  validated_ = false;
  if (state_.profiler) state_.profiler->step();
  steps_since_report_.push_back(of_step.mean());
  each_callback(&Callback::on_training_step_end, state_.batch, steps_since_report_.back());
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
  each_callback(&Callback::on_training_workload_end, metrics, std::exchange(steps_since_report_, {}));
}

void Controller::validate() {
  if (validated_) return;
  validated_ = true;
  each_callback(&Callback::on_validation_start);
  state_.reducers.reset(Phase::validation);
  for (const auto& engine : state_.engines) engine->eval();
  each_callback(&Callback::on_validation_epoch_start);
  const std::vector<Json> of_batches = evaluate_batches();
  for (const auto& engine : state_.engines) engine->train();
  each_callback(&Callback::on_validation_epoch_end, of_batches);
  MetricMean mean;
  for (const Json& of_batch : of_batches) mean.add(of_batch);
  check_ranks_alike(of_batches.empty() ? Json() : of_batches.front());
  const Json metrics = over_ranks(mean, Phase::validation);
  state_.reducers.reset(Phase::training);  // those of both phases have seen the validation
  if (log_) log_->write("validation", state_.batch, metrics);
  each_callback(&Callback::on_validation_end, metrics);
}

// The metrics of each batch on this rank; none on a rank that does not report.
std::vector<Json> Controller::evaluate_batches() {
  const c10::AutoGradMode no_graph(false);
  BatchIterator batches = validation_.iterator(/*repeat=*/false);
  std::vector<Json> reported;
  // A pipeline evaluates as many micro batches at once as it trains.
  const int64_t at_once = context_->use_pipeline_parallel() ? context_->num_micro_batches_per_slot() : 1;
  for (int64_t batch = 0; batch < validation_.length / at_once; ++batch) {
    const Metrics metrics = trial_->evaluate_batch(batches, batch);
    if (!unit_.should_report_metrics) continue;
    reported.push_back(to_json(metrics, fmt::format("evaluate_batch {} after step {}", batch, state_.batch)));
    check_same_keys(reported.front(), "batch 0", reported.back(), fmt::format("batch {}", batch));
  }
  return reported;
}

// `mine`: of one batch; null: this rank does not report.
void Controller::check_ranks_alike(const Json& mine) {
  const std::vector<Json> of_ranks = gather_json(world_.comm(), mine);
  const auto first = std::find_if(of_ranks.begin(), of_ranks.end(), [](const Json& keys) { return !keys.is_null(); });
  for (auto rank = first; rank != of_ranks.end(); ++rank) {
    if (rank->is_null()) continue;
    check_same_keys(*first, fmt::format("rank {}", first - of_ranks.begin()), *rank,
                    fmt::format("rank {}", rank - of_ranks.begin()));
  }
}

void Controller::save_checkpoint() {
  if (!checkpoints_->enabled()) return;
  // A rank that reads no data has taken none.
  const double taken = max_over_ranks(world_.comm(), {static_cast<double>(iterator_.taken())})[0];
  const int64_t micro_batches = static_cast<int64_t>(taken), done = state_.batch_in_epochs() + 1;
  checkpoints_->save({state_.batch + 1, micro_batches / training_.length,
                      micro_batches % training_.length * samples_of_a_micro_step(), done / state_.batches_per_epoch,
                      done % state_.batches_per_epoch, state_.batches_per_epoch});
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
