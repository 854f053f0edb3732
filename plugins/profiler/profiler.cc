// A small state machine: ask for the model's size, measure micro batches one after another where the cost model learns
// most, and write the fit as the profile.
#include "profiler/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat {
namespace {

// The second point of a line has to be far enough from the first to show a slope. More than kMost is not needed, and a
// larger micro batch takes longer.
constexpr int64_t kLeastSecond = 4;
constexpr int64_t kMost = 1024;

// Ends the profile if the reported size is impossible, with the reason.
void check_size(double num_params, std::optional<double> trainable) {
  if (num_params == 0) {
    throw Error(
        DSAT_FAILED_PRECONDITION,
        "the model-information trial reported no num_params; does the script pass the configuration to its engine?");
  }
  if (num_params < 1) {
    throw Error(DSAT_FAILED_PRECONDITION,
                fmt::format("num_params is {}: it counts the parameters of the whole model, at least 1", num_params));
  }
  if (trainable && (*trainable < 0 || *trainable > num_params)) {
    throw Error(
        DSAT_FAILED_PRECONDITION,
        fmt::format("trainable_num_params is {}, but num_params, of the whole model, is {}", *trainable, num_params));
  }
}

// May a stage or a value be the cause of this failure? It is not of an error of names, files or syntax in Python.
bool may_be_of_values(const Exit& exit) {
  const std::string_view reason = exit.reason();
  const auto others = {"NameError",           "SyntaxError",         "IndentationError",
                       "ModuleNotFoundError", "FileNotFoundError",   "PermissionError",
                       " failed by itself",   " could not start it", "can't open file"};
  return exit.outcome() == Outcome::failed && std::none_of(others.begin(), others.end(), [&](const char* words) {
           return reason.find(words) != std::string_view::npos;
         });
}

}  // namespace

Descriptor ModelProfiler::descriptor() {
  return {"dsat.profiler", "profiler", "1.0.0", "model size and memory per sample from a few small trials", {}};
}

void ModelProfiler::start(const Study& study) {
  study_ = study;
  space_ = config::space_from_json(study.space);
  micro_batches_ = std::make_unique<search::MicroBatches>(space_);
  if (micro_batches_->empty() || study_.zero_stages.empty()) throw Error("the space is empty: no micro batch or stage");
  data_parallel_size_ = std::max<int64_t>(1, study_.limits.data_parallel_size);
  world_size_ = study_.limits.slots_per_trial;
  if (take_given_information()) return measure_next();
  ask_model_information(std::nullopt);
}

Json ModelProfiler::overrides(StageOverride stage, int64_t micro_batch) const {
  Json overrides = others_;
  overrides[config::kMicroBatchKey] = micro_batch;
  if (stage) config::set(overrides, config::kStageKey, *stage);
  return overrides;
}

Json ModelProfiler::merged(StageOverride stage, int64_t micro_batch) const {
  Json config = study_.base_config;
  config::overwrite(config, overrides(stage, micro_batch));
  return config;
}

cost::Setup ModelProfiler::setup(StageOverride stage, int64_t micro_batch) const {
  return cost::setup_from_config(merged(stage, micro_batch), data_parallel_size_, inputs_.size.engine());
}

// Measured trials compete for the best configuration, so they use the study's stages: the user's own, else the next
// higher one, which needs less memory, else the highest.
ModelProfiler::StageOverride ModelProfiler::measuring_stage() const {
  const int own = config::zero_stage(merged(stage_, 1));
  for (const int stage : study_.zero_stages) {
    if (stage >= own) return stage == own ? stage_ : StageOverride(stage);
  }
  return highest_stage();
}

bool ModelProfiler::ask(const Json& overrides, const std::string& note) {
  TrialRequest request;
  request.overrides = overrides;
  request.note = note;
  if (!trials_.empty()) request.parent = trials_.back();
  const std::optional<TrialId> trial = create_trial(request);
  if (trial) trials_.push_back(*trial);
  return trial.has_value();
}

void ModelProfiler::ask_model_information(StageOverride stage) {
  stage_ = stage;
  micro_batch_ = micro_batches_->smallest();
  Json wanted = overrides(stage, micro_batch_);
  wanted["autotuning"] = {{"model_info", {{"profile", true}}}};
  const std::string where = stage ? fmt::format("at stage {}", *stage) : "of your own configuration";
  if (ask(wanted, fmt::format("model information {}", where))) return;
  finished_ = true;
  finish("the trial limit leaves no trial for the model's size; raise --max-trials");
}

void ModelProfiler::on_result(const Result& result) {
  metrics_.clear();
  for (size_t i = 0; i < result.size(); ++i) metrics_[std::string(detail::view(result[i].name))] = result[i].value;
}

void ModelProfiler::on_trial_exited(const Exit& exit) {
  if (finished_ || trials_.empty() || exit.trial() != trials_.back()) return;
  have_information_ ? measured(exit) : model_information_ended(exit);
}

void ModelProfiler::model_information_ended(const Exit& exit) {
  if (exit.outcome() == Outcome::completed) {
    // The memory probe sees a peak that the report may lack. On processors most of it may be the process itself.
    if (exit.peak_bytes()) metrics_.emplace("peak_memory", static_cast<double>(*exit.peak_bytes()));
    read_model_information();
    return measure_next();
  }
  if (exit.outcome() == Outcome::failed && begin_at_own_micro_batch()) return ask_model_information(stage_);
  if (may_be_of_values(exit) && turn_to_other_values()) return ask_model_information(stage_);
  if (are_others_refused(exit)) return ask_model_information(stage_);
  if (exit.outcome() != Outcome::out_of_memory) return give_up("the model-information trial", exit);
  observations_.push_back({setup(stage_, micro_batch_), true, {}});
  const int own = config::zero_stage(merged(stage_, micro_batch_));
  if (own >= highest_stage()) {
    finished_ = true;
    return finish(fmt::format(
        "the model does not fit: the model-information trial ran out of memory at stage {} with micro batch {}", own,
        micro_batch_));
  }
  ask_model_information(highest_stage());
}

// A model may need more than one sample at once (batch normalisation, experts). The user's own micro batch then becomes
// the smallest.
bool ModelProfiler::begin_at_own_micro_batch() {
  const int64_t own = study_.base_config.value(config::kMicroBatchKey, int64_t{0});
  if (own <= micro_batch_ || !space_.allows_micro_batch(own)) return false;
  space_.min_micro_batch = own;
  micro_batches_ = std::make_unique<search::MicroBatches>(space_);
  smallest_failed_ = true;
  return true;
}

// If the user's own configuration fails, its stage or one of its values may be the cause. Another stage with other
// values shows whether anything works. The highest one needs the least memory.
bool ModelProfiler::turn_to_other_values() {
  if (has_turned_) return false;
  has_turned_ = true;
  failed_before_ = std::max<int64_t>(failed_before_, 1);
  const int own = config::zero_stage(merged(stage_, micro_batch_));
  const config::StageSpace* other = nullptr;
  for (const config::StageSpace& stage : space_.stages) {
    if (stage.stage != own) other = &stage;
  }
  const config::StageSpace& chosen = other == nullptr ? space_.stages.back() : *other;
  for (const config::Axis& axis : chosen.axes) {
    const Json* given = config::find(study_.base_config, axis.key);
    if (given == nullptr) continue;
    const auto value = std::find_if(axis.values.begin(), axis.values.end(), [&](const Json& v) { return v != *given; });
    if (value != axis.values.end()) config::set(others_, axis.key, *value);
  }
  if (other != nullptr) stage_ = other->stage;
  return other != nullptr || !others_.empty();
}

// Values that clash are refused; then the other stage runs with the user's own values.
bool ModelProfiler::are_others_refused(const Exit& exit) {
  if (exit.outcome() != Outcome::invalid_config || others_.empty()) return false;
  others_ = Json::object();
  return true;
}

// The user's own numbers (DeepSpeed's autotuning.model_info) replace the model-information trial.
bool ModelProfiler::take_given_information() {
  const Json* given = config::find(study_.base_config, "autotuning.model_info");
  if (given == nullptr || !given->is_object() || given->value("profile", Json()) == true) return false;
  for (const char* name : {"num_params", "trainable_num_params", "activation_mem_per_gpu"}) {
    const auto it = given->find(name);
    if (it != given->end() && it->is_number() && *it > 0) metrics_[name] = it->get<double>();
  }
  if (metrics_.count("num_params") == 0) return false;
  micro_batch_ = 1;
  read_model_information();
  return true;
}

void ModelProfiler::read_model_information() {
  information_ = std::move(metrics_);
  const auto reported = [this](const char* name) {
    const auto it = information_.find(name);
    return it == information_.end() ? std::nullopt : std::optional<double>(it->second);
  };
  const double num_params = reported("num_params").value_or(0);
  const std::optional<double> trainable = reported("trainable_num_params");
  check_size(num_params, trainable);
  have_information_ = true;
  inputs_.size.num_params = num_params;
  inputs_.size.trainable_num_params = trainable.value_or(num_params);
  inputs_.size.largest_layer_params = reported("largest_layer_params").value_or(0);
  for (size_t i = 0; i < cost::kSmallParameters.size(); ++i) {
    inputs_.size.small_params[i] = reported(cost::kSmallParameters[i].key).value_or(0);
  }
  inputs_.recomputes_activations = reported("activation_checkpoints").value_or(0) > 0;
  // The one forward ran with the smallest legal micro batch.
  if (const auto activation = reported("activation_mem_per_gpu")) {
    inputs_.activation_bytes_at_micro_batch_1 = *activation / static_cast<double>(micro_batch_);
  }
  learn_device_memory();
  if (const auto world_size = reported("world_size"); world_size && *world_size >= 1) {
    world_size_ = static_cast<int64_t>(*world_size);
    data_parallel_size_ = config::data_parallel_size(world_size_, study_.base_config);
  }
  // Earlier out-of-memory trials were recorded with the data-parallel size of the plan.
  const cost::Setup here = setup(stage_, micro_batch_);
  for (cost::Observation& seen : observations_) seen.setup.data_parallel_size = here.data_parallel_size;
  if (const auto peak = reported("peak_memory"); peak && reported("activation_mem_per_gpu")) {
    inputs_.fixed_bytes = cost::fixed_bytes_by_forward(inputs_.size, here, *peak, *reported("activation_mem_per_gpu"));
  }
  stage_ = measuring_stage();
}

// The user's number, else the first one that a trial reports. A script may know its device only when it trains.
void ModelProfiler::learn_device_memory() {
  if (inputs_.device_memory_bytes) return;
  const std::map<std::string, double>& reported = metrics_.empty() ? information_ : metrics_;
  if (study_.device_memory_bytes) {
    inputs_.device_memory_bytes = static_cast<double>(*study_.device_memory_bytes);
  } else if (const auto it = reported.find("device_memory"); it != reported.end() && it->second > 0) {
    inputs_.device_memory_bytes = it->second;
  }
}

void ModelProfiler::measured(const Exit& exit) {
  learn_device_memory();
  const Outcome outcome = exit.outcome();
  const bool fits = outcome == Outcome::completed;
  if (fits || outcome == Outcome::out_of_memory) {
    std::optional<double> peak;
    if (const auto bytes = exit.peak_bytes(); bytes && fits) peak = static_cast<double>(*bytes);
    observations_.push_back({setup(stage_, micro_batch_), !fits, peak});
  } else if (outcome != Outcome::lost && outcome != Outcome::stopped) {
    // A failure shows nothing about memory. A larger micro batch would hardly do better, so smaller ones are measured.
    least_failed_ = std::min(least_failed_.value_or(micro_batch_), micro_batch_);
    if (!has_turned_) ++failed_before_;
    const bool none_ran = std::none_of(observations_.begin(), observations_.end(),
                                       [](const cost::Observation& seen) { return !seen.out_of_memory; });
    const bool is_smallest = micro_batch_ == micro_batches_->smallest();
    const bool turns = none_ran && is_smallest && may_be_of_values(exit) && turn_to_other_values();
    if (turns || (none_ran && is_smallest && are_others_refused(exit))) least_failed_.reset();
  }
  // The highest stage needs the least memory. The point of a lost or stopped trial is asked for again.
  if (outcome == Outcome::out_of_memory) stage_ = highest_stage();
  measure_next();
}

// The next point of the line at this stage: the legal micro batch where the cost model learns most. After an
// out-of-memory trial, the smallest untried one at the highest stage.
std::optional<int64_t> ModelProfiler::next_micro_batch() const {
  const cost::Setup here = setup(stage_, micro_batches_->smallest());
  int64_t largest = 0;
  std::optional<int64_t> too_big = least_failed_;
  for (const cost::Observation& seen : observations_) {
    if (seen.setup.stage != here.stage) continue;
    const int64_t micro_batch = seen.setup.micro_batch;
    if (seen.out_of_memory) too_big = std::min(too_big.value_or(micro_batch), micro_batch);
    if (!seen.out_of_memory) largest = std::max(largest, micro_batch);
  }
  const cost::MemoryFit fit = cost::fit_memory(inputs_, observations_);
  auto wanted = static_cast<double>(std::min(cost::next_to_measure(fit, here, trials_left()), kMost));
  if (least_failed_) {
    wanted = std::min(wanted, std::sqrt(static_cast<double>(std::max<int64_t>(1, largest) * *least_failed_)));
  }
  const int64_t rank = std::max<int64_t>(0, micro_batches_->rank_at_or_below(wanted));
  int64_t micro_batch = micro_batches_->at(rank);
  // Divisors may lie far apart, with none in between. Then one step up is a second point too.
  if (micro_batch <= largest && !too_big && rank + 1 < micro_batches_->count()) {
    const double most = std::max(cost::micro_batch_ceiling(fit, here).value, 2.0 * kLeastSecond);
    if (static_cast<double>(micro_batches_->at(rank + 1)) <= most) micro_batch = micro_batches_->at(rank + 1);
  }
  const bool untried = micro_batch > largest && (!too_big || micro_batch < *too_big);
  return untried ? std::optional<int64_t>(micro_batch) : std::nullopt;
}

// A trial that ran out of memory, failed at a too small micro batch or with the user's own values shows little, so it
// is replaced. At most as many replacements are allowed as trials.
int64_t ModelProfiler::trials_left() const {
  const int64_t allowed = study_.limits.profile_trials;
  const int64_t out_of_memory = std::count_if(observations_.begin(), observations_.end(),
                                              [](const cost::Observation& seen) { return seen.out_of_memory; });
  const int64_t in_vain = out_of_memory + (smallest_failed_ ? 1 : 0) + (has_turned_ ? failed_before_ : 0);
  const int64_t most = std::min(allowed + std::min(in_vain, allowed), study_.limits.max_trials);
  return most - static_cast<int64_t>(trials_.size());
}

void ModelProfiler::measure_next() {
  if (trials_left() > 0) {
    if (const std::optional<int64_t> micro_batch = next_micro_batch()) {
      micro_batch_ = *micro_batch;
      const int stage = config::zero_stage(merged(stage_, micro_batch_));
      if (ask(overrides(stage_, micro_batch_),
              fmt::format("memory at micro batch {} of stage {}", micro_batch_, stage))) {
        return;
      }
    }
  }
  hand_over();
}

void ModelProfiler::give_up(const std::string& what, const Exit& exit) {
  finished_ = true;
  const std::string reason(exit.reason());
  finish(reason.empty() ? fmt::format("{} failed", what) : fmt::format("{} failed: {}", what, reason));
}

Json ModelProfiler::profile() const {
  const cost::MemoryFit fit = cost::fit_memory(inputs_, observations_);
  const auto whole = [](double count) { return static_cast<int64_t>(count); };
  Json profile{{"schema", 1},
               {"num_params", whole(inputs_.size.num_params)},
               {"trainable_num_params", whole(inputs_.size.trainable_num_params)},
               {"device_memory_bytes", nullptr},
               {"world_size", world_size_},
               {"activation_bytes_per_sample", cost::to_json(cost::activation_bytes_per_sample(fit))},
               {"fixed_bytes", cost::to_json(cost::fixed_bytes(fit))},
               {"stages", Json::array()},
               {"trials", trials_}};
  if (inputs_.device_memory_bytes) profile["device_memory_bytes"] = whole(*inputs_.device_memory_bytes);
  for (const int stage : study_.zero_stages) {
    const cost::Setup smallest = setup(stage, micro_batches_->smallest());
    // The formula is exact for the states; fixed_bytes holds the rest.
    const double states = cost::model_state_bytes(inputs_.size, smallest);
    profile["stages"].push_back({{"stage", stage},
                                 {"model_state_bytes", cost::to_json({states, states, states})},
                                 {"max_micro_batch", cost::to_json(cost::micro_batch_ceiling(fit, smallest))}});
  }
  const auto pass_on = [&](const char* name) {
    if (const auto it = information_.find(name); it != information_.end()) profile[name] = whole(it->second);
  };
  pass_on("activation_mem_per_gpu");
  pass_on("largest_layer_params");
  for (const cost::SmallParameters& small : cost::kSmallParameters) pass_on(small.key);
  return profile;
}

void ModelProfiler::hand_over() {
  others_ = Json::object();  // the profile is of the user's own values
  set_profile(profile());
  finished_ = true;
  finish(fmt::format("the profile used {} trials", trials_.size()));
}

}  // namespace dsat
