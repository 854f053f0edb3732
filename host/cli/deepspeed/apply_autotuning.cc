// Copies each value of the section into the study's options unless the command line gave one. A notice names a key that
// means something else here than in DeepSpeed.
#include "deepspeed/apply_autotuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "dsat/config/json.h"
#include "options/current_folder.h"

namespace dsat::cli {
namespace {

// DeepSpeed's documented defaults that differ from dsat's.
constexpr const char* kDefaultMetric = "throughput";
constexpr const char* kDefaultTuner = "model_based";
constexpr int64_t kDefaultMaxMicroBatch = 1024;
constexpr int64_t kDefaultEarlyStopping = 5;  // of a search that goes stage by stage

constexpr const char* kGridSearcher = "grid";

// Options that some searchers have.
constexpr const char* kMicroBatchesOption = "num-tuning-micro-batch-sizes";
constexpr const char* kEarlyStoppingOption = "early-stopping";

bool declares(const host::PluginInfo& plugin, const std::string& name) {
  return std::any_of(plugin.options.begin(), plugin.options.end(),
                     [&](const Json& option) { return option.value("name", "") == name; });
}

int small(int64_t value) { return static_cast<int>(std::min<int64_t>(value, std::numeric_limits<int>::max())); }

class Applier {
 public:
  Applier(const AutotuningChoice& choice, const Values& values, host::StudyOptions& options)
      : section_(choice.section), deepspeed_form_(choice.deepspeed_form), values_(values), options_(options) {}

  void apply_search() {
    const std::string fallback = deepspeed_form_ ? kDefaultMetric : options_.metric;
    if (!values_.given("metric") && !values_.given("metric-pattern"))
      options_.metric = section_.metric.value_or(fallback);
    if (section_.fast.value_or(deepspeed_form_)) {
      options_.default_axes = false;
      say("fast: only ZeRO stage, micro batch and what the configuration lists are tuned; \"fast\": false tunes more");
    }
    if (section_.tuner_num_trials && !values_.given("max-trials"))
      options_.max_trials = small(*section_.tuner_num_trials);
  }

  void apply_batches() {
    if (section_.max_train_batch_size && !values_.given("max-train-batch-size")) {
      options_.max_train_batch_size = section_.max_train_batch_size;
    }
    const bool max_given = values_.given("max-micro-batch"), min_given = values_.given("min-micro-batch");
    if (section_.min_micro_batch && !min_given) options_.min_micro_batch = *section_.min_micro_batch;
    if (section_.max_micro_batch && !max_given) options_.max_micro_batch = section_.max_micro_batch;
    if (deepspeed_form_ && !options_.max_micro_batch) {
      options_.max_micro_batch = std::max(kDefaultMaxMicroBatch, options_.min_micro_batch);
    }
  }

  void apply_window() {
    if (section_.start_profile_step && !values_.given("start-profile-step")) {
      options_.start_profile_step = small(*section_.start_profile_step);
    }
    if (section_.end_profile_step && !values_.given("end-profile-step")) {
      options_.end_profile_step = small(*section_.end_profile_step);
    }
    if (options_.start_profile_step > options_.end_profile_step) {
      throw Error(
          fmt::format("autotuning: start_profile_step {} lies after end_profile_step {}: give a window of at "
                      "least one step",
                      options_.start_profile_step, options_.end_profile_step));
    }
  }

  // A mapping on the command line replaces the section's mapping of the same key.
  void apply_arg_mappings() {
    for (const auto& mapping : section_.arg_mappings) {
      const bool mapped = std::any_of(options_.arg_mappings.begin(), options_.arg_mappings.end(),
                                      [&](const auto& given) { return given.first == mapping.first; });
      if (!mapped) options_.arg_mappings.push_back(mapping);
    }
  }

  // A searcher's own early stopping knows stages. For a searcher without that option, early stopping ends the study.
  void apply_tuner(const host::PluginInfo& searcher) {
    const bool grid = searcher.name == kGridSearcher;
    const auto early_stopping = or_default(section_.tuner_early_stopping, grid, kDefaultEarlyStopping);
    if (early_stopping && !give(searcher, kEarlyStoppingOption, *early_stopping) && *early_stopping > 0) {
      options_.early_stopping = small(*early_stopping);
    }
    if (section_.num_tuning_micro_batch_sizes &&
        !give(searcher, kMicroBatchesOption, *section_.num_tuning_micro_batch_sizes)) {
      say(fmt::format("num_tuning_micro_batch_sizes: not used, because {} chooses micro batches one by one",
                      searcher.name));
    }
    if (section_.gives_model_size) say("model_info gives the size of the model: no trial measures it");
  }

  // Without --autotuning only dsat's own results are written.
  void name_keys_without_effect() {
    std::vector<std::string> keys = section_.without_effect;
    if (!deepspeed_form_) {
      if (section_.results_dir) keys.emplace_back("results_dir");
      if (section_.exps_dir) keys.emplace_back("exps_dir");
      if (section_.overwrite) keys.emplace_back("overwrite");
    }
    if (!keys.empty()) notices_.push_back(fmt::format("autotuning: without effect here: {}", fmt::join(keys, ", ")));
  }

  std::vector<std::string> take_notices() { return std::move(notices_); }

 private:
  std::optional<int64_t> or_default(std::optional<int64_t> given, bool has_default, int64_t value) const {
    return !given && deepspeed_form_ && has_default ? value : given;
  }
  // Returns false if the searcher has no such option. A value from the command line stays.
  bool give(const host::PluginInfo& searcher, const char* name, int64_t value) {
    if (!declares(searcher, name)) return false;
    Json& given = options_.searcher.options;
    if (!given.contains(name)) given[name] = value;
    return true;
  }
  void say(const std::string& what) { notices_.push_back("autotuning." + what); }

  const AutotuningSection& section_;
  bool deepspeed_form_;
  const Values& values_;
  host::StudyOptions& options_;
  std::vector<std::string> notices_;
};

}  // namespace

AutotuningChoice read_autotuning(const Tokens& arguments, const std::optional<std::string>& ds_config,
                                 bool deepspeed_form) {
  AutotuningChoice choice;
  choice.deepspeed_form = deepspeed_form;
  const std::filesystem::path cwd = current_folder();
  const auto file =
      ds_config ? std::optional<std::filesystem::path>(cwd / *ds_config) : host::config_file_of(arguments, cwd);
  if (!file) return choice;
  choice.file = *file;
  std::error_code ignored;
  const bool pipe = std::filesystem::is_fifo(*file, ignored);
  try {
    choice.config = config::load_input(*file);
  } catch (const Error&) {
    if (pipe) throw;
    return choice;
  }
  if (choice.config.is_object()) {
    choice.section = read_autotuning_section(choice.config, file->lexically_proximate(cwd).string());
  }
  return choice;
}

std::optional<TunerChoice> searcher_of(const AutotuningChoice& choice) {
  if (!choice.holds()) return std::nullopt;
  if (!choice.section.tuner_type && !choice.deepspeed_form) return std::nullopt;
  const std::string tuner = choice.section.tuner_type.value_or(kDefaultTuner);
  const std::string searcher = tuner == "gridsearch" ? kGridSearcher : tuner == "random" ? "random" : "guided";
  return TunerChoice{searcher, fmt::format("autotuning.tuner_type {}: the searcher is {}", tuner, searcher)};
}

std::vector<std::string> apply_autotuning(const AutotuningChoice& choice, const Values& values,
                                          const host::PluginInfo& searcher, host::StudyOptions& options) {
  if (!choice.holds()) return {};
  std::vector<std::string> notices = choice.section.notices;
  if (choice.deepspeed_form && !choice.section.enabled.value_or(true)) {
    notices.emplace_back("autotuning.enabled is false, but --autotuning turns the section on");
  }
  Applier applier(choice, values, options);
  applier.apply_search();
  applier.apply_batches();
  applier.apply_window();
  applier.apply_arg_mappings();
  applier.apply_tuner(searcher);
  applier.name_keys_without_effect();
  for (std::string& notice : applier.take_notices()) notices.push_back(std::move(notice));
  return notices;
}

std::optional<std::vector<int>> deepspeed_stages(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  const Json* stage = config::find(config, "zero_optimization.stage");
  if (stage == nullptr || stage->is_null() || *stage == "all") return std::vector<int>{0, 1, 2, 3};
  if (stage->is_array()) return std::vector<int>{0, 1, 2, 3};
  if (stage->is_number_integer() && *stage >= 0 && *stage <= 3) return std::vector<int>{stage->get<int>()};
  return std::nullopt;
}

}  // namespace dsat::cli
