#include "options/study_options.h"

#include <algorithm>
#include <charconv>

#include "dsat/cli/read_value.h"
#include "dsat/error.h"

namespace dsat::cli {
namespace {

template <class Target, class Value>
void assign(Target& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

std::vector<int> stages_of(const std::vector<std::string>& texts) {
  std::vector<int> stages;
  for (const std::string& text : texts) stages.push_back(text[0] - '0');
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

std::pair<std::string, std::string> arg_mapping(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error("--arg-mapping: '" + text +
                "' is no KEY=FLAG: give one such as train_micro_batch_size_per_gpu=--per_device_train_batch_size");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void read_search(const Values& values, host::StudyOptions& options) {
  assign(options.metric, values.text("metric"));
  if (values.given("zero-stages")) options.zero_stages = stages_of(values.texts("zero-stages"));
  assign(options.space_file, values.text("space"));
  assign(options.global_batch, values.integer("global-batch"));
  assign(options.max_train_batch_size, values.integer("max-train-batch-size"));
  assign(options.min_micro_batch, values.integer("min-micro-batch"));
  assign(options.max_micro_batch, values.integer("max-micro-batch"));
  assign(options.seed, values.integer("random-seed"));
  if (options.max_micro_batch && *options.max_micro_batch < options.min_micro_batch) {
    throw Error("--max-micro-batch " + std::to_string(*options.max_micro_batch) + " is below --min-micro-batch " +
                std::to_string(options.min_micro_batch) + ": nothing is left to try");
  }
}

void read_limits(const Values& values, host::StudyOptions& options) {
  assign(options.max_trials, values.small_integer("max-trials"));
  assign(options.max_concurrent_trials, values.small_integer("max-concurrent-trials"));
  assign(options.max_slots, values.small_integer("max-slots"));
  assign(options.profile_trials, values.small_integer("profile-trials"));
  assign(options.time_budget, values.duration("time-budget"));
  assign(options.trial_timeout, values.duration("trial-timeout"));
  assign(options.no_progress_timeout, values.duration("no-progress-timeout"));
}

// "4", or "2,4": sizes to choose from.
std::vector<int> sizes(const Values& values, const std::string& name) {
  std::vector<int> numbers;
  const std::string text = values.text(name).value_or("");
  for (size_t start = 0; values.given(name) && start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    int number = 0;
    const auto [stop, error] = std::from_chars(text.data() + start, text.data() + end, number);
    constexpr int kMost = 1 << 20;
    if (start == end || stop != text.data() + end || error != std::errc() || number < 1 || number > kMost) {
      throw Error("--" + name + ": '" + text + "' is no number of at least 1, nor several with commas, such as 2,4");
    }
    numbers.push_back(number);
    start = end + 1;
  }
  return numbers;
}

void read_resources(const Values& values, host::StudyOptions& options) {
  assign(options.slots, values.small_integer("slots"));
  assign(options.slots_per_trial, values.small_integer("slots-per-trial"));
  assign(options.hostfile, values.text("hostfile"));
  assign(options.include, values.text("include"));
  assign(options.exclude, values.text("exclude"));
  options.num_gpus = sizes(values, "num-gpus");
  options.num_nodes = sizes(values, "num-nodes");
}

void read_trials(const Values& values, host::StudyOptions& options) {
  assign(options.ds_config, values.text("ds-config"));
  assign(options.device_memory_bytes, values.size("device-memory"));
  assign(options.start_profile_step, values.small_integer("start-profile-step"));
  assign(options.end_profile_step, values.small_integer("end-profile-step"));
  if (options.end_profile_step < options.start_profile_step) {
    throw Error("--end-profile-step " + std::to_string(options.end_profile_step) +
                " lies before --start-profile-step " + std::to_string(options.start_profile_step) +
                ": give a window of at least one step");
  }
  for (const std::string& text : values.texts("arg-mapping")) options.arg_mappings.push_back(arg_mapping(text));
  if (values.text("trial-cwd").value_or("keep") == "copy") options.trial_cwd = host::TrialCwd::copy;
}

// Where trials run: on this machine, or only in a model of a cluster.
void read_runner(const Values& values, host::StudyOptions& options) {
  const std::string runner = values.text("runner").value_or("local");
  const std::optional<std::string> file = values.text("sim");
  if (runner == "slurm") {
    throw Error("--runner slurm is not in this version: leave it out, and trials run on this machine");
  }
  cli_kit::read_choice("--runner", runner, {"local", "sim"});
  if (runner == "local") {
    if (file) throw Error("--sim " + *file + " needs --runner sim: without it trials run on this machine");
    return;
  }
  if (!file) throw Error("--runner sim needs --sim FILE: a cluster (JSON) or recorded trials (CSV)");
  if (values.given("run-full-experiment")) throw Error("--run-full-experiment: a simulation has nothing to train");
  auto simulation = host::load_simulation(*file);
  if (!simulation.ok()) throw Error(simulation.status().message());
  options.simulation = std::move(simulation).value();
}

}  // namespace

host::StudyOptions study_options(const Values& values) {
  host::StudyOptions options;
  read_search(values, options);
  read_limits(values, options);
  read_resources(values, options);
  read_trials(values, options);
  read_runner(values, options);
  assign(options.output_dir, values.text("output-dir"));
  return options;
}

host::ResumeOptions resume_options(const Values& values) {
  host::ResumeOptions options;
  options.max_trials = values.small_integer("max-trials");
  options.max_concurrent_trials = values.small_integer("max-concurrent-trials");
  options.time_budget = values.duration("time-budget");
  return options;
}

}  // namespace dsat::cli
