#include "study/plan.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <set>
#include <system_error>

#include "base/sha256.h"
#include "command/arg_mappings.h"
#include "command/command_template.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "runner/read_metrics.h"
#include "study/plan_slots.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

const std::vector<int> kDefaultZeroStages{1, 2, 3};
constexpr int kDefaultProfileTrials = 3;

// Every misspelt key is an error: DeepSpeed would ignore it, and the search would tune something else. A key that is
// like no known one is the user's own business.
void check_keys(const Plan& plan, std::vector<std::string>& notices) {
  for (const config::UnknownKey& unknown : config::unknown_keys(plan.user_config)) {
    if (unknown.stray_space) {
      notices.push_back("the key '" + unknown.key + "' has stray white space around it: DeepSpeed ignores it");
    } else if (!unknown.suggestion.empty()) {
      throw Error(plan.config_name() + ": unknown key '" + unknown.key + "': did you mean '" + unknown.suggestion +
                  "'?");
    } else {
      notices.push_back("the key '" + unknown.key + "' is none of DeepSpeed's: kept as it is");
    }
  }
}

void collect_auto(const Json& node, const std::string& prefix, std::vector<std::string>& found) {
  for (const auto& item : node.items()) {
    const std::string key = prefix + item.key();
    if (item.value().is_object() && key != "autotuning") collect_auto(item.value(), key + ".", found);
    if (item.value() == "auto") found.push_back(key);
  }
}

// "auto" is Hugging Face's: it fills the value in before DeepSpeed sees it. Nobody else does.
void leave_out_auto(Plan& plan) {
  if (plan.hugging_face) return;
  std::vector<std::string> keys;
  collect_auto(plan.base_config, "", keys);
  for (const std::string& key : keys) {
    config::erase(plan.base_config, key);
    plan.notices.push_back(
        "'" + key + "' is \"auto\", which only Hugging Face's Trainer fills in: left out, DeepSpeed's default holds");
  }
}

// Is `path` this folder, or in it, whatever links lead there?
bool is_within(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(path, error), outer = fs::weakly_canonical(folder, error);
  const auto [end, rest] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end() || (std::next(end) == outer.end() && end->empty());
}

// "train.py" of `deepspeed --num_gpus 8 train.py`, else the program.
std::string name_of(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (fs::path(word).extension() == ".py" && word.front() != '-') return fs::path(word).stem().string();
  }
  return fs::path(command.front()).filename().string();
}

// One word for a folder: "torchvision dsat core_api" becomes "torchvision-dsat-core_api".
std::string folder_name(std::string name) {
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+';
    if (!plain) c = '-';
  }
  return name.empty() || name[0] == '.' ? "study" + name : name;
}

// Beside the command's files; with copies of those files not among what is copied, but where the program was started.
fs::path default_output_dir(const Plan& plan) {
  std::error_code error;
  const std::string name = folder_name(plan.name);
  const fs::path root = (plan.trial_cwd == TrialCwd::copy ? fs::current_path(error) : plan.cwd) / "dsat-results";
  fs::path dir = root / name;
  for (int i = 2; fs::exists(dir, error); ++i) dir = root / (name + "-" + std::to_string(i));
  return dir;
}

Result<StrategyPlan> choose_strategy(const StrategyChoice& choice, PluginKind kind, bool hashed) {
  StrategyPlan plan;
  Result<PluginInfo> plugin = find_strategy(choice.plugin, kind);
  if (!plugin.ok()) return plugin.status();
  plan.plugin = std::move(plugin).value();
  plan.plugin.file = fs::absolute(plan.plugin.file);
  Result<Json> options = parse_plugin_options(plan.plugin, choice.options);
  if (!options.ok()) return options.status();
  plan.options = std::move(options).value();
  if (hashed) plan.sha256 = sha256_of_file(plan.plugin.file);
  return plan;
}

Status check_numbers(const StudyOptions& o) {
  const auto bad = [](const std::string& what) { return Status::invalid(what); };
  if (o.max_trials < 1) return bad("--max-trials " + std::to_string(o.max_trials) + ": at least 1 is needed");
  if (o.max_concurrent_trials < 1) {
    return bad("--max-concurrent-trials " + std::to_string(o.max_concurrent_trials) + ": at least 1 is needed");
  }
  if (o.start_profile_step < 0 || o.end_profile_step < o.start_profile_step) {
    return bad("--start-profile-step " + std::to_string(o.start_profile_step) + " --end-profile-step " +
               std::to_string(o.end_profile_step) + ": need 0 <= start <= end");
  }
  if (o.min_micro_batch < 1)
    return bad("--min-micro-batch " + std::to_string(o.min_micro_batch) + ": at least 1 is needed");
  if (o.max_micro_batch && *o.max_micro_batch < o.min_micro_batch) {
    return bad("--max-micro-batch " + std::to_string(*o.max_micro_batch) + " is below --min-micro-batch " +
               std::to_string(o.min_micro_batch));
  }
  if (o.global_batch && *o.global_batch < 1) return bad("--global-batch: at least 1 is needed");
  if (o.max_train_batch_size && *o.max_train_batch_size < 1) return bad("--max-train-batch-size: at least 1 is needed");
  if (o.profile_trials && *o.profile_trials < 1)
    return bad("--profile-trials " + std::to_string(*o.profile_trials) + ": at least 1 is needed");
  if (o.trial_timeout.count() <= 0) return bad("--trial-timeout: must be above 0");
  if (o.no_progress_timeout.count() <= 0) return bad("--no-progress-timeout: must be above 0");
  if (o.time_budget && o.time_budget->count() <= 0) return bad("--time-budget: must be above 0");
  for (const int stage : o.zero_stages) {
    if (stage < 0 || stage > 3) return bad("--zero-stages " + std::to_string(stage) + ": stages are 0, 1, 2, 3");
  }
  return {};
}

void copy_options(const StudyOptions& o, Plan& plan) {
  plan.simulation = o.simulation;
  plan.trial_cwd = o.trial_cwd;
  for (const fs::path& include : o.includes) plan.includes.push_back(fs::absolute(include).lexically_normal());
  plan.config_by_environment = o.config_by_environment;
  plan.variables = o.variables;
  plan.hyperparameters = o.hyperparameters;
  plan.experiment = o.experiment;
  plan.seed = o.seed;
  plan.start_profile_step = o.start_profile_step;
  plan.end_profile_step = o.end_profile_step;
  plan.max_trials = o.max_trials;
  plan.early_stopping = o.early_stopping;
  plan.max_concurrent_trials = o.max_concurrent_trials;
  plan.max_slots = o.max_slots;
  plan.global_batch = o.global_batch;
  plan.max_train_batch_size = o.max_train_batch_size;
  plan.min_micro_batch = o.min_micro_batch;
  plan.default_axes = o.default_axes;
  plan.max_micro_batch = o.max_micro_batch;
  plan.trial_timeout = o.trial_timeout;
  plan.no_progress_timeout = o.no_progress_timeout;
  plan.time_budget = o.time_budget;
}

// What the user left open is the searcher's to say.
void settle_defaults(const StudyOptions& o, Plan& plan) {
  const Json& wanted = plan.searcher.plugin.study;
  plan.zero_stages = o.zero_stages;
  if (plan.zero_stages.empty()) plan.zero_stages = wanted.value("zero_stages", kDefaultZeroStages);
  std::sort(plan.zero_stages.begin(), plan.zero_stages.end());
  plan.zero_stages.erase(std::unique(plan.zero_stages.begin(), plan.zero_stages.end()), plan.zero_stages.end());
  plan.profile_trials = o.profile_trials.value_or(wanted.value("profile_trials", kDefaultProfileTrials));
}

Status choose_metric(const std::string& name, Plan& plan) {
  const Result<MetricInfo> metric = metric_info(name);
  if (!metric.ok()) return metric.status();
  if (plan.simulation && !plan.simulation->metrics.empty()) {
    std::string all;
    for (const std::string& given : plan.simulation->metrics) all += (all.empty() ? "" : ", ") + given;
    const auto& list = plan.simulation->metrics;
    if (std::find(list.begin(), list.end(), metric->name) == list.end()) {
      return Status::invalid("--metric " + name + ": this simulation gives only " + all);
    }
  }
  plan.metric = metric->name;
  plan.maximise = metric->maximise;
  if (!plan.maximise && !plan.global_batch) {
    plan.notices.push_back("the metric " + plan.metric +
                           " is smallest for small batches by construction; fix the batch with --global-batch");
  }
  return {};
}

Status choose_slots(const StudyOptions& options, const std::optional<CommandTemplate>& command,
                    const Environment& environment, Plan& plan) {
  const Devices devices = plan.simulation ? Devices() : discover_devices(environment);
  Result<SlotPlan> slots = plan_study_slots(devices, options, command, plan.cwd, plan.user_config);
  if (!slots.ok()) return slots.status();
  plan.slots = std::move(slots).value();
  plan.device_memory_bytes = options.device_memory_bytes;
  plan.notices.insert(plan.notices.end(), plan.slots.notices.begin(), plan.slots.notices.end());
  return {};
}

// The user's configuration: the command's, or where a simulation needs no command, that of ds_config or its own.
Status read_configuration(const StudyOptions& options, const Environment& environment, Plan& plan,
                          std::optional<CommandTemplate>& command) {
  if (!plan.command.empty()) {
    Result<CommandTemplate> parsed = CommandTemplate::parse(
        {options.command, options.ds_config, {}, plan.cwd, environment, options.config_by_environment});
    if (!parsed.ok()) return parsed.status();
    command = std::move(parsed).value();
    plan.config_file = command->config_file();
  } else if (options.ds_config) {
    plan.config_file = plan.cwd / *options.ds_config;
  } else {
    plan.config_file = plan.simulation->name;
    plan.user_config = plan.simulation->base_config;
    return {};
  }
  plan.user_config = plan.config_file.empty() ? Json::object() : config::load_file(plan.config_file);
  return {};
}

// The profile starts from the base configuration. Where the user's own stage and keys do not go together it moves to
// the lowest stage of the space that they do go with; keys that are wrong at every stage are refused here, not in a
// trial.
std::optional<std::string> settle_base_stage(Plan& plan) {
  const std::optional<std::string> broken = config::broken_rule(plan.base_config);
  if (!broken) return std::nullopt;
  for (const config::StageSpace& stage : plan.space.stages) {
    Json candidate = plan.base_config;
    config::overwrite(candidate, Json{{"zero_optimization", {{"stage", stage.stage}}}});
    if (config::broken_rule(candidate)) continue;
    plan.base_config = std::move(candidate);
    return "the configuration's own ZeRO stage is not tried (" + *broken + "): the profile starts at stage " +
           std::to_string(stage.stage);
  }
  throw Error(plan.config_name() + ": " + *broken);
}

// What a copied folder needs before anything is copied: itself, outside of the results, and includes that are there and
// that nothing else there is called.
Status check_copied_folder(const Plan& plan) {
  if (plan.trial_cwd != TrialCwd::copy) return {};
  std::error_code error;
  if (is_within(plan.cwd, plan.dir)) {
    return Status::invalid("the model directory " + plan.cwd.string() + " lies inside the results " +
                           plan.dir.string() + ": give another --output-dir");
  }
  std::set<std::string> names;
  for (const fs::path& include : plan.includes) {
    const std::string name = (include.has_filename() ? include : include.parent_path()).filename().string();
    if (!fs::exists(include, error)) {
      return Status::invalid("include " + include.string() + ": no such file or directory");
    }
    if (!names.insert(name).second) return Status::invalid("two includes are called " + name + ": rename one");
    if (is_within(plan.dir, include)) {
      return Status::invalid("include " + include.string() + " holds the results " + plan.dir.string() +
                             ": give another --output-dir");
    }
    if (fs::exists(fs::symlink_status(plan.cwd / name, error)) && !fs::equivalent(plan.cwd / name, include, error)) {
      return Status::invalid("include " + include.string() + ": the model directory " + plan.cwd.string() + " has a " +
                             name + " of its own; rename one");
    }
  }
  return {};
}

// Where one configuration is all there is, a search would only cost time.
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
  throw Error("the tuning space is a single configuration (ZeRO stage " + std::to_string(space.stages.front().stage) +
              ", micro batch " + std::to_string(legal) +
              "): nothing is left to choose; allow more with --zero-stages, --max-micro-batch or --space");
}

// The user's configuration for each number of pipeline stages that trials may have. What is no number is refused where
// the space is built.
std::vector<Json> by_pipeline_stages(const Plan& plan) {
  const Json* list = config::find(plan.user_config, config::kPipelineStagesKey);
  if (plan.space_file.is_object() && plan.space_file.contains(config::kPipelineStagesKey)) {
    list = &plan.space_file[config::kPipelineStagesKey];
    if (list->is_object() && list->contains("values")) list = &(*list)["values"];
  }
  if (list == nullptr || !list->is_array()) return {plan.user_config};
  std::vector<Json> configs;
  for (const Json& stages : *list) {
    configs.push_back(plan.user_config);
    config::set(configs.back(), config::kPipelineStagesKey, stages);
  }
  return configs;
}

// Devices of a node and nodes, of all trials where they are alike.
config::World world_of(const SlotPlan& slots) {
  const std::vector<int>& nodes = slots.shape.node_slots;
  const bool even = std::all_of(nodes.begin(), nodes.end(), [&](int of_node) { return of_node == nodes.front(); });
  return even && !nodes.empty() ? config::World{nodes.front(), slots.shape.nodes()}
                                : config::World{slots.slots_per_trial, 1};
}

// Of the user's own configuration: of the first number of pipeline stages that it lists.
int64_t first_data_parallel_size(const Plan& plan) {
  Json config = plan.user_config;
  const Json* listed = config::find(config, config::kPipelineStagesKey);
  if (listed != nullptr && listed->is_array() && !listed->empty()) {
    const Json first = listed->front();
    config::set(config, config::kPipelineStagesKey, first);
  }
  return config::data_parallel_size(plan.slots.slots_per_trial, config);
}

// The data-parallel sizes of trials that are not alike: a micro batch that divides the global batch at their least
// common multiple does so in each of them.
int64_t common_multiple(const Plan& plan, int64_t otherwise) {
  const std::vector<Json> configs = by_pipeline_stages(plan);
  std::vector<int64_t> worlds;
  for (const int gpus : plan.slots.num_gpus) {
    for (const int nodes : plan.slots.num_nodes) worlds.push_back(int64_t{gpus} * nodes);
  }
  if (worlds.empty() && configs.size() == 1) return otherwise;
  if (worlds.empty()) worlds.push_back(plan.slots.slots_per_trial);
  int64_t multiple = 1;
  for (const int64_t world : worlds) {
    for (const Json& config : configs) {
      try {
        multiple = std::lcm(multiple, config::data_parallel_size(world, config));
      } catch (const Error&) {
        // Such a trial is refused when it is asked for.
      }
    }
  }
  return multiple;
}

// The user's batch sizes are where the study starts. Where trials differ in their data-parallel size the train batch
// follows each of them, so one that does not hold for the first says nothing against the others.
void complete_base_batch(Plan& plan) {
  config::GivenBatchSizes given = config::read_batch_sizes(plan.base_config);
  if (config::tuned_world(plan.base_config) && (given.micro_batch || given.accumulation)) given.train_batch.reset();
  config::check_batch_sizes(given, plan.data_parallel_size);
  config::write_batch_sizes(plan.base_config, config::complete_batch_sizes(given, plan.data_parallel_size));
}

// The bound of the train batch as one of the micro batch, where accumulation and data-parallel size are known.
void bound_by_train_batch(Plan& plan) {
  if (!plan.max_train_batch_size || plan.slots.sizes_are_tuned()) return;
  const std::string most = "--max-train-batch-size " + std::to_string(*plan.max_train_batch_size);
  if (plan.global_batch) {
    if (*plan.global_batch <= *plan.max_train_batch_size) return;
    throw Error(most + " is below --global-batch " + std::to_string(*plan.global_batch) + ": nothing is left to try");
  }
  int64_t accumulation = plan.base_config.at(config::kAccumulationKey).get<int64_t>();
  for (const config::StageSpace& stage : plan.space.stages) {
    for (const config::Axis& axis : stage.axes) {
      if (axis.key != config::kAccumulationKey) continue;
      for (const Json& value : axis.values) accumulation = std::min(accumulation, value.get<int64_t>());
    }
  }
  const int64_t samples = accumulation * plan.data_parallel_size;
  if (plan.space.min_micro_batch * samples > *plan.max_train_batch_size) {
    throw Error(most + ": the smallest train_batch_size is " + std::to_string(plan.space.min_micro_batch * samples) +
                " (micro batch " + std::to_string(plan.space.min_micro_batch) + " x accumulation " +
                std::to_string(accumulation) + " x data-parallel size " + std::to_string(plan.data_parallel_size) +
                "): allow more");
  }
  const int64_t largest = *plan.max_train_batch_size / samples;
  plan.space.max_micro_batch = std::min(plan.space.max_micro_batch.value_or(largest), largest);
}

}  // namespace

config::RuleOptions Plan::rules() const {
  config::RuleOptions rules;
  rules.min_micro_batch = min_micro_batch;
  rules.max_micro_batch = max_micro_batch;
  return rules;
}

std::string Plan::config_name() const { return config_file.empty() ? "the configuration" : config_file.string(); }

int Plan::concurrency() const { return std::max(1, std::min(max_concurrent_trials, slots.at_once)); }

TrialShape Plan::shape_of(const Json& config) const {
  const std::optional<config::World> world = config::tuned_world(config);
  if (!world || !slots.sizes_are_tuned()) return slots.shape;
  return TrialShape::even(static_cast<int>(world->num_nodes), static_cast<int>(world->num_gpus));
}

void derive_space(Plan& plan, int64_t data_parallel_size) {
  config::SpaceRequest request;
  request.stages = plan.zero_stages;
  request.user_config = plan.user_config;
  request.space_file = plan.space_file;
  request.rules = plan.rules();
  request.global_batch = plan.global_batch;
  request.default_axes = plan.default_axes;
  request.num_gpus = plan.slots.num_gpus;
  request.num_nodes = plan.slots.num_nodes;
  request.world = world_of(plan.slots);
  request.dp_size = common_multiple(plan, data_parallel_size);
  config::SpaceResult result = config::build_space(request);
  const bool first_time = plan.space.stages.empty();
  std::vector<std::string> said = plan.notices;
  plan.space = std::move(result.space);
  plan.base_config = std::move(result.base_config);
  plan.data_parallel_size = config::data_parallel_size_of(plan.base_config, data_parallel_size);
  complete_base_batch(plan);
  bound_by_train_batch(plan);
  leave_out_auto(plan);
  const std::optional<std::string> moved = settle_base_stage(plan);
  if (first_time) {
    if (moved) plan.notices.push_back(*moved);
    plan.notices.insert(plan.notices.end(), result.notices.begin(), result.notices.end());
  } else {
    plan.notices = std::move(said);
  }
}

Result<Plan> make_plan(const StudyOptions& options) {
  Plan plan;
  if (options.command.empty() && !options.simulation) {
    return Status::invalid("no training command is given; write it after --");
  }
  Status status = check_numbers(options);
  if (!status.ok()) return status;
  copy_options(options, plan);
  const bool kept = !plan.simulation || plan.simulation->keep;
  status = choose_metric(options.metric, plan);
  if (!status.ok()) return status;
  Result<StrategyPlan> searcher = choose_strategy(options.searcher, PluginKind::searcher, kept);
  if (!searcher.ok()) return searcher.status();
  plan.searcher = std::move(searcher).value();
  settle_defaults(options, plan);
  Result<StrategyPlan> profiler = choose_strategy(options.profiler, PluginKind::profiler, kept);
  if (!profiler.ok()) return profiler.status();
  plan.profiler = std::move(profiler).value();

  std::error_code error;
  plan.cwd = options.cwd.empty() ? fs::current_path(error) : fs::absolute(options.cwd);
  const Environment environment = options.environment.empty() ? current_environment() : options.environment;
  plan.command = options.command;
  try {
    std::optional<CommandTemplate> command;
    status = read_configuration(options, environment, plan, command);
    if (!status.ok()) return status;
    if (options.config_overwrites.is_object()) config::overwrite(plan.user_config, options.config_overwrites);
    if (options.space_file) plan.space_file = config::load_file(*options.space_file);
    check_keys(plan, plan.notices);
    plan.arg_mappings =
        merge_arg_mappings(plan.user_config, plan.space_file, plan.config_file, options.arg_mappings, plan.notices);
    if (command) {
      status = command->map_arguments(plan.arg_mappings);
      plan.hugging_face = command->is_hugging_face();
    }
    if (status.ok()) status = choose_slots(options, command, environment, plan);
    if (!status.ok()) return status;
    derive_space(plan, first_data_parallel_size(plan));
    check_choice(plan);
  } catch (const Error& e) {
    return Status::invalid(e.what());
  }
  plan.name = !options.name.empty()   ? options.name
              : !plan.command.empty() ? name_of(plan.command)
                                      : plan.simulation->name;
  if (!kept) return plan;
  plan.dir = options.output_dir.empty() ? default_output_dir(plan) : fs::absolute(options.output_dir);
  status = check_copied_folder(plan);
  if (!status.ok()) return status;
  return plan;
}

}  // namespace dsat::host
