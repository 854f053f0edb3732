// Resolves a study's options into its plan: numbers, metric, plugins, the user's configuration, slots, space and
// folder. The first error in this order is reported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/guarded.h"
#include "command/arg_mappings.h"
#include "command/command_template.h"
#include "command/hugging_face.h"
#include "command/launcher_options.h"
#include "command/missing_script.h"
#include "command/refused_forms.h"
#include "dsat/base/utf8.h"
#include "dsat/config/batch.h"
#include "dsat/config/curriculum.h"
#include "dsat/config/engine_version.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "dsat/cost/setup.h"
#include "outputs/log_lines.h"
#include "plan/choose_metric.h"
#include "plan/command_axes.h"
#include "plan/device_hours.h"
#include "plan/plan.h"
#include "plan/plan_slots.h"
#include "plan/runners.h"
#include "record/abandoned_start.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

const std::vector<int> kDefaultZeroStages{1, 2, 3};
constexpr int kDefaultProfileTrials = 3;
constexpr size_t kLongestFolderName = 200;  // with "study" and a number it stays below the usual limit of 255

// DeepSpeed ignores a key that it does not know, or refuses it in some sections. A misspelt key is an error, because
// the search would tune something else. Any other one may be the user's own, another program's or a newer DeepSpeed's.
void check_keys(const Plan& plan, std::vector<std::string>& notices) {
  std::vector<std::string> own;
  for (const config::UnknownKey& unknown : config::unknown_keys(plan.user_config)) {
    const std::string& meant = unknown.suggestion;
    const std::string hint = meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
    if (unknown.misspelt) throw Error(fmt::format("{}: {}", plan.config_name(), config::why_refused(unknown)));
    if (unknown.stray_space && !unknown.refused) {
      notices.push_back(fmt::format("the key '{}' has stray white space around it: DeepSpeed ignores it", unknown.key));
    } else if (unknown.refused) {
      notices.push_back(
          fmt::format("dsat does not know the key '{}': if DeepSpeed does not know it either, the first trial fails{}",
                      unknown.key, hint));
    } else if (!meant.empty()) {
      notices.push_back(fmt::format("DeepSpeed has no key '{}' and ignores it{}", unknown.key, hint));
    } else {
      own.push_back(fmt::format("'{}'", unknown.key));
    }
  }
  if (own.empty()) return;
  constexpr size_t kMostNamed = 8;
  const size_t more = own.size() - std::min(own.size(), kMostNamed);
  own.resize(own.size() - more);
  notices.push_back(fmt::format("DeepSpeed has no key {}{}: kept unchanged", fmt::join(own, ", "),
                                more == 0 ? "" : fmt::format(" and {} more", more)));
}

// The version is known after the first trial only.
void tell_of_retired_keys(Plan& plan) {
  const std::vector<std::string> retired = config::retired_keys(plan.user_config);
  if (retired.empty()) return;
  plan.notices.push_back(
      fmt::format("DeepSpeed after 0.19.6 refuses '{}', even where it is off: remove it for the newest",
                  fmt::join(retired, "', '")));
}

// From here on the configuration has DeepSpeed's form. What DeepSpeed's checks refuse is refused before the first
// trial.
void check_values(Plan& plan) {
  try {
    plan.user_config = config::canonical(plan.user_config);
  } catch (const Error& error) {
    throw plan.in_config(error);
  }
}

// The cost model reads the configuration of every trial. A value that it cannot read must be refused now and not end
// the study later.
void check_setup(const Plan& plan) {
  try {
    cost::setup_from_config(with_precision(plan.base_config, plan.filled_in_precision()), plan.data_parallel_size);
  } catch (const Error& error) {
    throw plan.in_config(error);
  }
}

// The runner changes these settings in the trials' configurations (trial_inputs.h).
void tell_of_curriculum(Plan& plan) {
  Json config = plan.user_config;
  if (!config::train_at_full_difficulty(config)) return;
  plan.notices.push_back(
      "curriculum learning or random-LTD: trials train at full difficulty and with all tokens, so that the best "
      "configuration fits for the whole training; the best configuration keeps your schedule");
}

Json load_space_file(const fs::path& file) {
  try {
    return config::load_input(file);
  } catch (const Error& error) {
    throw Error(fmt::format("--space: {}", error.what()));
  }
}

// Whether `path` is `folder` or in it, after resolving links.
bool is_within(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(path, error), outer = fs::weakly_canonical(folder, error);
  const auto [end, rest] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end() || (std::next(end) == outer.end() && end->empty());
}

// Returns "train" for `deepspeed --num_gpus 8 train.py`, else the program's name.
std::string name_of(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (fs::path(word).extension() == ".py" && word.front() != '-') return fs::path(word).stem().string();
  }
  return fs::path(command.front()).filename().string();
}

// Returns one word for a folder: "torchvision dsat core_api" becomes "torchvision-dsat-core_api".
std::string folder_name(std::string name) {
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+';
    if (!plain) c = '-';
  }
  name.resize(std::min(name.size(), kLongestFolderName));
  return name.empty() || name[0] == '.' ? "study" + name : name;
}

// A visitor that refuses a value below the setting's minimum.
struct CheckRange {
  template <class Value>
  void operator()(const Setting& setting, const std::optional<Value>& value) const {
    if (value) (*this)(setting, *value);
  }
  void operator()(const Setting& setting, std::chrono::milliseconds time) const {
    if (time.count() <= 0) throw Error(fmt::format("--{}: must be above 0", setting.option));
  }
  template <class Value>
  void operator()(const Setting& setting, const Value& value) const {
    if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value>) {
      if (setting.option == nullptr || value >= setting.least) return;
      throw Error(fmt::format("--{} {}: at least {} is needed", setting.option, value, setting.least));
    }
  }
};

void check_numbers(const StudyOptions& o) {
  StudyLimits::visit(o, CheckRange());
  Comparison::visit(o, CheckRange());
  TrialMeasurement::visit(o, CheckRange());
  BatchBounds::visit(o, CheckRange());
  TrialTimeouts::visit(o, CheckRange());
  PluginProcesses::visit(o, CheckRange());
  if (!o.budget.empty()) parse_device_hours(o.budget);
  if (o.end_profile_step < o.start_profile_step) {
    throw Error(
        fmt::format("--end-profile-step {} lies before --start-profile-step {}: give a window of at least one step",
                    o.end_profile_step, o.start_profile_step));
  }
  if (!(o.memory_margin >= 0 && o.memory_margin < 1)) {
    throw Error(fmt::format("--memory-margin {}: a share from 0 to below 1 is needed, as 0.05", o.memory_margin));
  }
  if (o.max_micro_batch && *o.max_micro_batch < o.min_micro_batch) {
    throw Error(
        fmt::format("--max-micro-batch {} is below --min-micro-batch {}", *o.max_micro_batch, o.min_micro_batch));
  }
  const LineReader checks_patterns(o.oom_patterns);
  if (!o.loss_pattern.empty()) compiled_number_pattern("--loss-pattern", o.loss_pattern);
  if (!o.grad_norm_pattern.empty()) compiled_number_pattern("--grad-norm-pattern", o.grad_norm_pattern);
  check_metric_pattern(o);
  check_tokens(o);
  for (const int stage : o.zero_stages) {
    if (stage < 0 || stage > 3) throw Error(fmt::format("--zero-stages {}: stages are 0, 1, 2, 3", stage));
  }
}

void check_injection(const StudyOptions& o) {
  if (o.inject && !o.probe) throw Error("--inject is a part of the hook that --no-probe leaves out: keep one of them");
  if (o.inject && o.simulation) throw Error("--inject: a simulation runs no script");
}

// The caller cannot change the environment of this process, so it is not checked.
void check_environment(const Environment& given) {
  if (given == current_environment()) return;
  for (const std::string& variable : given) {
    if (variable.find('=') == std::string::npos) {
      throw Error(fmt::format("environment: '{}' is not of the form NAME=value", variable));
    }
  }
}

// Errors that only an embedding program can make; the command line sets these members itself.
void check_members(const StudyOptions& o) {
  const auto check_object = [](const Json& value, const char* member) {
    if (value.is_null() || value.is_object()) return;
    throw Error(
        fmt::format("{}: {} is no JSON object; leave it null for none", member, shortened(config::text_of(value), 60)));
  };
  check_object(o.config_overwrites, "config_overwrites");
  check_object(o.hyperparameters, "hyperparameters");
  check_environment(o.environment);
  std::error_code error;
  if (!o.cwd.empty() && !fs::is_directory(o.cwd, error)) {
    throw Error(fmt::format("cwd {}: no such directory; name the directory for the command", o.cwd.string()));
  }
}

template <class... Groups>
void copy_groups(const StudyOptions& options, Plan& plan) {
  ((static_cast<Groups&>(plan) = options), ...);
}

// Returns the command as dsat runs it: without a shell, without abbreviations, and with the caller's variable that
// names the configuration if nothing else does.
Argv settled_command(const StudyOptions& options, const fs::path& cwd) {
  Argv command = without_abbreviations(with_env(options.command));
  if (options.ds_config || options.config_by_environment || config_file_of(command, cwd)) return command;
  const Environment environment = options.environment.empty() ? current_environment() : options.environment;
  for (const char* name : {kLightningVariable, kAccelerateVariable}) {
    const auto file = get_variable(environment, name);
    if (!file || file->empty() || *file == "none") continue;
    const bool has_env = !command.empty() && command[0] == "env";
    command.insert(command.begin() + (has_env ? 1 : 0), fmt::format("{}={}", name, *file));
    return with_env(std::move(command));
  }
  return command;
}

void copy_options(const StudyOptions& options, Plan& plan) {
  copy_groups<StudyLimits, Comparison, TrialTimeouts, SearchTarget, BatchBounds, SearchSettings, TrialMeasurement,
              TrialSetup, PluginProcesses, ClusterOptions>(options, plan);
  plan.arg_mappings.clear();  // merged with those of the configuration later
  plan.cwd = options.cwd.empty() ? fs::current_path() : fs::absolute(options.cwd);
  for (fs::path& include : plan.includes) include = fs::absolute(include).lexically_normal();
  plan.simulation = options.simulation;
  plan.experiment = options.experiment;
  plan.command = settled_command(options, plan.cwd);
}

// The searcher's defaults apply where the user gave no value.
void settle_defaults(Plan& plan) {
  const Json& wanted = plan.searcher.plugin.study;
  std::vector<int>& stages = plan.zero_stages;
  if (stages.empty()) stages = wanted.value("zero_stages", kDefaultZeroStages);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  if (!plan.max_restarts) plan.max_restarts = kDefaultMaxRestarts;
  if (!plan.profile_trials) plan.profile_trials = wanted.value("profile_trials", kDefaultProfileTrials);
}

void choose_slots(const StudyOptions& options, const std::optional<CommandTemplate>& command,
                  const Environment& environment, Plan& plan) {
  if (!plan.simulation) choose_runner(options, command, environment, plan);
  const bool here = !plan.simulation && plan.runner == kLocalRunner;
  const Devices devices = here ? discover_devices(environment) : Devices();
  plan.slots = plan_study_slots(devices, options, command, plan.cwd, plan.user_config, environment, plan);
  plan.notices.insert(plan.notices.end(), plan.slots.notices.begin(), plan.slots.notices.end());
}

// Reads the command's configuration or, for a simulation without a command, that of ds_config or the simulation.
void read_configuration(const StudyOptions& options, const std::optional<CommandTemplate>& command, Plan& plan) {
  if (command) {
    plan.config_file = command->config_file();
    plan.precision = command->precision();
  } else if (options.ds_config) {
    plan.config_file = plan.cwd / *options.ds_config;
  } else {
    plan.config_file = plan.simulation->name;
    plan.user_config = plan.simulation->base_config;
    return;
  }
  if (command && command->config_in_place().is_object()) {
    plan.user_config = command->config_in_place();
  } else if (options.already_read && options.already_read->file == plan.config_file) {
    plan.user_config = options.already_read->content;
  } else {
    plan.user_config = plan.config_file.empty() ? Json::object() : config::load_input(plan.config_file);
  }
  if (command) plan.user_config = command->with_own_batch(std::move(plan.user_config));
}

void check_include(const Plan& plan, const fs::path& include, std::set<std::string>& names) {
  std::error_code error;
  const std::string name = (include.has_filename() ? include : include.parent_path()).filename().string();
  if (!fs::exists(include, error)) {
    throw Error(fmt::format("include {}: no such file or directory", include.string()));
  }
  if (!names.insert(name).second) throw Error(fmt::format("two includes are called {}: rename one", name));
  if (is_within(plan.dir, include)) {
    throw Error(
        fmt::format("include {} holds the results {}: give another --output-dir", include.string(), plan.dir.string()));
  }
  if (fs::exists(fs::symlink_status(plan.cwd / name, error)) && !fs::equivalent(plan.cwd / name, include, error)) {
    throw Error(fmt::format("include {}: the model directory {} has a {} of its own; rename one", include.string(),
                            plan.cwd.string(), name));
  }
}

// Checks before copying: the model directory must be outside the results, and includes must exist and have unique
// names.
void check_copied_folder(const Plan& plan) {
  if (plan.trial_cwd != TrialCwd::copy) return;
  if (is_within(plan.cwd, plan.dir)) {
    throw Error(fmt::format("the model directory {} lies inside the results {}: give another --output-dir",
                            plan.cwd.string(), plan.dir.string()));
  }
  std::set<std::string> names;
  for (const fs::path& include : plan.includes) check_include(plan, include, names);
}

// On other hosts the script may be at a place that does not exist here.
void check_script(const Plan& plan, const Environment& environment) {
  if (plan.simulation || plan.runner != kLocalRunner || !plan.slots.hostfile.empty()) return;
  refuse_part_of_a_job(plan.command, find_launcher(plan.command), environment);
  const std::string problem = missing_script(plan.command, plan.cwd, plan.includes);
  if (!problem.empty()) throw Error(problem);
}

// If there is only one configuration, a search is a waste of time.
void check_choice(const Plan& plan) {
  const config::Space& space = plan.space;
  if (space.stages.size() > 1) return;
  for (const config::Axis& axis : space.stages.front().axes) {
    if (axis.values.size() > 1) return;
  }
  int64_t found = 0, legal = 0;
  const int64_t last = space.micro_batch_divides.value_or(space.max_micro_batch.value_or(space.min_micro_batch + 1));
  for (int64_t samples = space.min_micro_batch; samples <= last && found < 2; ++samples) {
    if (!space.allows_micro_batch(samples)) continue;
    ++found;
    legal = samples;
  }
  if (found > 1) return;
  throw Error(
      fmt::format("the tuning space is a single configuration (ZeRO stage {}, micro batch {}): nothing is left to "
                  "choose; allow more with --zero-stages, --max-micro-batch or --space",
                  space.stages.front().stage, legal));
}

// Returns the size for the user's own configuration, with the first number of pipeline stages in its list.
int64_t first_data_parallel_size(const Plan& plan) try {
  Json config = plan.user_config;
  const Json* listed = config::find(config, config::kPipelineStagesKey);
  if (listed != nullptr && listed->is_array() && !listed->empty()) {
    const Json first = listed->front();
    config::set(config, config::kPipelineStagesKey, first);
  }
  return config::data_parallel_size(plan.slots.slots_per_trial, config);
} catch (const Error& error) {
  throw plan.in_config(error);
}

void map_megatron_flags(Plan& plan) {
  for (const auto& [key, flag] : megatron_flags(plan.command)) {
    const auto is_mapped = [&key = key](const auto& mapping) { return mapping.first == key; };
    if (std::any_of(plan.arg_mappings.begin(), plan.arg_mappings.end(), is_mapped)) continue;
    plan.arg_mappings.emplace_back(key, flag);
    plan.notices.push_back(fmt::format("{} of the command follows {} of each trial's configuration", flag, key));
  }
}

void resolve_space(const StudyOptions& options, Plan& plan) {
  const Environment environment = options.environment.empty() ? current_environment() : options.environment;
  if (options.space_file) {
    plan.space_file = load_space_file(*options.space_file);
    plan.space_name = fmt::format("--space {}", options.space_file->string());
  }
  std::optional<CommandTemplate> command;
  if (!plan.command.empty()) {
    CommandRequest request{plan.command, options.ds_config, {}, plan.cwd, environment, options.config_by_environment};
    request.inject = options.inject;
    request.may_lack_configuration = !options.metric_pattern.empty();
    request.tuned_keys = keys_of_files(plan);
    command.emplace(std::move(request));
  }
  read_configuration(options, command, plan);
  if (options.config_overwrites.is_object()) config::overwrite(plan.user_config, options.config_overwrites);
  if (command) {
    command->learn_from(plan.user_config);
    plan.training_file = command->training_file();
  }
  check_keys(plan, plan.notices);
  check_values(plan);
  check_command_axes(plan);
  take_first_values(plan);
  tell_of_retired_keys(plan);
  tell_of_curriculum(plan);
  if (plan.inject && plan.config_file.empty() && std::exchange(plan.baseline, false)) {
    plan.notices.emplace_back(
        "--inject: the script builds your own configuration, so the gain over it stays unknown; give --ds-config FILE "
        "with what it builds to learn it");
  }
  plan.arg_mappings =
      merge_arg_mappings(plan.user_config, plan.space_file, plan.config_file, options.arg_mappings, plan.notices);
  if (command) {
    command->map_arguments(plan.arg_mappings);
    plan.hugging_face = command->may_fill_in_auto();
    map_megatron_flags(plan);
  }
  if (plan.lacks_configuration()) tune_command_alone(options.zero_stages, plan);
  choose_slots(options, command, environment, plan);
  check_script(plan, environment);
  derive_space(plan, first_data_parallel_size(plan));
  check_setup(plan);
  check_mapped_flags(plan.command, plan.arg_mappings, plan.user_config, plan.space);
  check_choice(plan);
}

// The trials' configurations are JSON and name files in these folders.
void check_can_be_named(const fs::path& folder) {
  if (first_invalid_utf8(folder.string()) == std::string::npos) return;
  throw Error(fmt::format("folder {}: its name is not UTF-8, so no configuration can name a file in it: use another",
                          printable_line(folder.string())));
}

}  // namespace

CommandRequest request_of(const Plan& plan, const Environment& environment) {
  CommandRequest request{plan.command, plan.config_file, plan.arg_mappings,
                         plan.cwd,     environment,      plan.config_by_environment};
  request.inject = plan.inject;
  request.may_lack_configuration = !plan.metric_pattern.empty();
  request.tuned_keys = keys_of_files(plan);
  return request;
}

// The folder is beside the command's files. If these files are copied for trials, it is where the program was started.
fs::path default_output_dir(const Plan& plan) {
  std::error_code error;
  const std::string name = folder_name(plan.name);
  const fs::path root = (plan.trial_cwd == TrialCwd::copy ? fs::current_path(error) : plan.cwd) / "dsat-results";
  fs::path dir = root / name;
  for (int i = 2; fs::exists(dir, error) && !is_abandoned_start(dir); ++i) dir = root / fmt::format("{}-{}", name, i);
  return dir;
}

Plan make_plan(const StudyOptions& options) {
  if (options.command.empty() && !options.simulation) throw Error("no training command is given; write it after --");
  check_numbers(options);
  check_members(options);
  check_injection(options);
  Plan plan;
  copy_options(options, plan);
  const bool is_kept = !plan.simulation || plan.simulation->keep;
  choose_metric(options, plan);
  plan.searcher = choose_strategy(options.searcher, PluginKind::searcher, options, is_kept);
  settle_defaults(plan);
  plan.profiler = choose_strategy(options.profiler, PluginKind::profiler, options, is_kept);
  resolve_space(options, plan);
  plan.name = !options.name.empty()   ? options.name
              : !plan.command.empty() ? name_of(plan.command)
                                      : plan.simulation->name;
  if (!is_kept) return plan;
  plan.dir = options.output_dir.empty() ? default_output_dir(plan) : fs::absolute(options.output_dir);
  check_copied_folder(plan);
  check_can_be_named(plan.dir);
  if (!plan.simulation) check_can_be_named(plan.cwd);
  return plan;
}

}  // namespace dsat::host
