// Reads the keys in the order of their dependencies: resources and hyperparameters first, then the command, then the
// configuration of the command.
#include "determined/read_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "determined/deepspeed_overwrites.h"
#include "determined/entrypoint.h"
#include "determined/misspelt_keys.h"
#include "dsat/base/shell.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "dsat/host/command.h"
#include "dsat/host/environment.h"
#include "dsat/host/metric.h"
#include "dsat/yaml/yaml_file.h"
#include "options/current_folder.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigKey = "hyperparameters.deepspeed_config";
constexpr const char* kOverwriteKey = "hyperparameters.overwrite_deepspeed_args";

bool one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

class ExperimentReader {
 public:
  explicit ExperimentReader(const ExperimentRequest& request)
      : request_(request), file_(YamlFile::load(request.file)) {}

  Experiment read() {
    refuse_misspelt_keys(file_);
    result_.document = file_.root();
    result_.name = file_.text("name");
    result_.description = file_.text("description");
    if (const auto max = integer("max_restarts", 0)) result_.max_restarts = static_cast<int>(*max);
    read_resources();
    read_variables();
    read_hyperparameters();
    read_command();
    read_config();
    check_batch_sizes();
    read_searcher();
    check_training_keys();
    report_the_rest();
    return std::move(result_);
  }

 private:
  // An integer of at least `min`; nullopt: missing.
  std::optional<int64_t> integer(const std::string& key, int64_t min) const {
    const Json* value = file_.find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer() || *value < min || *value > INT32_MAX) {
      file_.refuse(key, fmt::format("must be an integer of at least {}, it has {}", min, value->dump()));
    }
    return value->get<int64_t>();
  }

  void read_resources() {
    if (file_.find_object("resources") == nullptr) return;
    if (const auto max = integer("resources.max_slots", 1)) result_.max_slots = static_cast<int>(*max);
    if (const auto slots = integer("resources.slots_per_trial", 1)) result_.slots_per_trial = static_cast<int>(*slots);
  }

  void read_variables() {
    const std::string key = "environment.environment_variables";
    if (file_.find_object("environment") == nullptr || file_.find(key) == nullptr) return;
    const Json& given = *file_.find(key);
    if (given.is_array()) return add_variables(given, key);
    if (!given.is_object()) file_.refuse(key, fmt::format("must be a list of NAME=value, it has {}", given.dump()));
    const Json& spelled = *file_.find_spelled(key);
    for (const auto& item : given.items()) {
      const std::string place = fmt::format("{}.{}", key, item.key());
      const bool for_device = one_of(item.key(), {"cpu", "cuda", "gpu", "rocm"}) && item.value().is_array();
      if (!for_device) {
        if (item.value().is_structured()) file_.refuse(place, "must be a text");
        add_variable(fmt::format("{}={}", item.key(), text_of(spelled.at(item.key()))), place);
      } else if (is_for_this_machine(item.key())) {
        add_variables(item.value(), place);
      } else if (!item.value().empty() && is_for_this_machine("cpu")) {
        result_.notices.push_back(fmt::format(
            "{}: {} is left out, as no tool of such a device is in PATH here: give the variables as one list if trials "
            "run on other machines",
            file_.where(place), place));
      }
    }
  }

  static std::string text_of(const Json& spelled) { return spelled.is_null() ? "" : spelled.get<std::string>(); }

  bool is_for_this_machine(const std::string& device) const {
    const bool nvidia = host::find_program("nvidia-smi", "/", request_.environment).ok();
    const bool amd = !nvidia && host::find_program("rocm-smi", "/", request_.environment).ok();
    if (device == "rocm") return amd;
    return device == "cpu" ? !nvidia && !amd : nvidia;
  }

  void add_variables(const Json& list, const std::string& key) {
    for (const Json& entry : list) {
      if (!entry.is_string()) file_.refuse(key, fmt::format("must be a list of NAME=value, it has {}", entry.dump()));
      add_variable(entry, key);
    }
  }

  void add_variable(const std::string& entry, const std::string& key) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      file_.refuse(key, fmt::format("must be a list of NAME=value, it has \"{}\"", entry));
    }
    const std::string name = entry.substr(0, equals);
    if (!is_variable_name(name)) {
      file_.refuse(key, fmt::format("has the variable name \"{}\": a name is letters, digits and _", name));
    }
    if (entry.find('\0') != std::string::npos) file_.refuse(key, fmt::format("has a NUL in the value of {}", name));
    host::set_variable(result_.variables, entry.substr(0, equals), entry.substr(equals + 1));
  }

  void read_hyperparameters() {
    const Json* given = file_.find_object("hyperparameters");
    if (given != nullptr) result_.hyperparameters = constant(*given, "hyperparameters");
    const Json* overwrites = hyperparameter("overwrite_deepspeed_args");
    if (overwrites == nullptr) return;
    if (!overwrites->is_object()) {
      file_.refuse(kOverwriteKey, fmt::format("must hold DeepSpeed keys, it has {}", overwrites->dump()));
    }
    result_.config_overwrites = in_deepspeed_form(*overwrites, kOverwriteKey);
  }

  Json in_deepspeed_form(const Json& keys, const char* place) const {
    try {
      return as_deepspeed_keys(keys);
    } catch (const Error& error) {
      file_.refuse(place, fmt::format("cannot be read: {}", error.what()));
    }
  }

  const Json* hyperparameter(const char* name) const {
    const auto it = result_.hyperparameters.find(name);
    return it == result_.hyperparameters.end() || it->is_null() ? nullptr : &*it;
  }

  // Turns Determined's forms of a hyperparameter into values: {type: const, val: 3} becomes 3, and for a DeepSpeed key
  // {type: categorical, vals: [..]} becomes a list, which is an axis. Ranges are refused.
  Json constant(const Json& node, const std::string& key) const {
    if (!node.is_object()) return node;
    const auto type = node.find("type");
    const std::string form = type != node.end() && type->is_string() ? type->get<std::string>() : "";
    if (form == "const" && node.contains("val")) return node["val"];
    if (form == "categorical" && node.contains("vals")) {
      if (key.rfind(fmt::format("{}.", kOverwriteKey), 0) == 0 && node["vals"].is_array()) {
        const std::string setting = key.substr(std::string_view(kOverwriteKey).size() + 1);
        if (config::lists_are_axes(setting)) return node["vals"];
        file_.refuse(key, fmt::format("is a choice (categorical), but for this key a list is one value: give the "
                                      "choices in --space FILE, as {{\"{}\": [..]}}",
                                      setting));
      }
      file_.refuse(key, "is a choice (categorical): dsat tunes DeepSpeed's keys only, write one value");
    }
    if (one_of(form, {"int", "double", "log"}) && node.contains("minval")) {
      file_.refuse(key, fmt::format("is a range ({}): dsat tunes DeepSpeed's keys only, write one value", form));
    }
    Json result = Json::object();
    for (const auto& item : node.items()) {
      result[item.key()] = constant(item.value(), fmt::format("{}.{}", key, item.key()));
    }
    return result;
  }

  void read_command() {
    const Json* entrypoint = file_.find("entrypoint");
    if (entrypoint == nullptr) {
      throw Error(fmt::format("{}: has no entrypoint: add the command that trains, \"entrypoint: python3 train.py\"",
                              file_.file().string()));
    }
    if (!entrypoint->is_string() && !entrypoint->is_array()) {
      file_.refuse("entrypoint", fmt::format("must be a command or a list of words, it has {}", entrypoint->dump()));
    }
    try {
      result_.command = entrypoint_words(*file_.find_spelled("entrypoint"));
      for (const std::string& entry : take_variables(result_.command)) add_variable(entry, "entrypoint");
      settle_slots();
      LaunchCommand launch = replace_launch_module(
          {result_.command, result_.slots_per_trial.value_or(1), request_.model_dir, request_.environment});
      result_.command = std::move(launch.words);
      if (!launch.notice.empty()) result_.notices.push_back(launch.notice);
    } catch (const Error& error) {
      file_.refuse("entrypoint", error.what());
    }
  }

  void settle_slots() {
    const std::optional<int> asked = host::slots_of_command(result_.command);
    if (asked && result_.slots_per_trial && *asked != *result_.slots_per_trial) {
      throw Error(fmt::format("takes {} slots, resources.slots_per_trial is {}: make them the same", *asked,
                              *result_.slots_per_trial));
    }
    if (request_.slots_per_trial) result_.slots_per_trial = request_.slots_per_trial;
    if (!asked && !result_.slots_per_trial) result_.slots_per_trial = 1;  // Determined's default
  }

  // The file that the entrypoint itself names; empty: none.
  std::string entrypoint_config() const { return host::config_of_command(result_.command, request_.model_dir); }

  void read_config() {
    const Json* given = hyperparameter("deepspeed_config");
    const Json* inlined = hyperparameter("ds_config");
    const bool is_swapped = given != nullptr ? given->is_object() : inlined != nullptr && inlined->is_string();
    if (is_swapped) std::swap(given, inlined);
    const std::string in_command = entrypoint_config();
    if (given == nullptr && inlined != nullptr) {
      if (!in_command.empty()) {
        file_.refuse("hyperparameters.ds_config",
                     fmt::format("is a configuration, and the entrypoint names {}: keep one", in_command));
      }
      return take_inlined(*inlined);
    }
    if (given != nullptr && !given->is_string()) {
      file_.refuse(kConfigKey, fmt::format("must be a path, it has {}", given->dump()));
    }
    const std::string path = given != nullptr ? given->get<std::string>() : in_command;
    if (path.empty()) {
      throw Error(fmt::format("{}: {} is missing: give the path of the DeepSpeed configuration in the model directory",
                              file_.where("hyperparameters"), kConfigKey));
    }
    if (!in_command.empty() && fs::path(in_command).lexically_normal() != fs::path(path).lexically_normal()) {
      file_.refuse(kConfigKey,
                   fmt::format("is {}, the entrypoint has {}: name one and the same file", path, in_command));
    }
    result_.ds_config = find_config(path, given != nullptr ? kConfigKey : "entrypoint");
  }

  void take_inlined(const Json& inlined) {
    if (!inlined.is_object()) {
      file_.refuse("hyperparameters.ds_config", fmt::format("must hold DeepSpeed keys, it has {}", inlined.dump()));
    }
    Json config = in_deepspeed_form(inlined, "hyperparameters.ds_config");
    config::overwrite(config, result_.config_overwrites);
    result_.config_overwrites = std::move(config);
  }

  // Looks in the model directory, then in the included files.
  fs::path find_config(const std::string& path, const std::string& key) const {
    std::error_code error;
    if (fs::is_regular_file(request_.model_dir / path, error)) return request_.model_dir / path;
    const fs::path wanted = fs::path(path).lexically_normal();
    for (const fs::path& include : request_.includes) {
      const fs::path name = (include.has_filename() ? include : include.parent_path()).filename();
      if (wanted.begin() == wanted.end() || *wanted.begin() != name) continue;
      const fs::path candidate = include.parent_path() / wanted;
      if (fs::is_regular_file(candidate, error))
        return candidate.is_absolute() ? candidate : current_folder() / candidate;
    }
    file_.refuse(key, fmt::format("names {}, which is neither in {} nor included", path, request_.model_dir.string()));
  }

  // The script gets these sizes as hyperparameters, so they must agree with the configuration.
  void check_batch_sizes() const {
    const auto global = checked_size("global_batch_size"), ranks = checked_size("data_parallel_world_size");
    if (!global && !ranks) return;
    Json config = result_.ds_config ? config::load_input(*result_.ds_config) : Json::object();
    config::overwrite(config, result_.config_overwrites);
    // A list is an axis, and the trials show which of its values fits these sizes.
    for (const char* key : {config::kMicroBatchKey, config::kAccumulationKey, config::kTrainBatchKey}) {
      const Json* listed = config::find(config, key);
      if (listed != nullptr && listed->is_array()) config::erase(config, key);
    }
    const int slots = result_.slots_per_trial.value_or(host::slots_of_command(result_.command).value_or(1));
    const int64_t expected_ranks = config::data_parallel_size(slots, config);
    if (ranks && *ranks != expected_ranks) {
      file_.refuse("hyperparameters.data_parallel_world_size",
                   fmt::format("is {}, {} slots per trial and the DeepSpeed configuration make it {}", *ranks, slots,
                               expected_ranks));
    }
    config::GivenBatchSizes given = config::read_batch_sizes(config);
    if (!global) return;
    const std::string key = "hyperparameters.global_batch_size";
    if (given.train_batch && *given.train_batch != *global) {
      file_.refuse(key, fmt::format("is {}, the DeepSpeed configuration's train_batch_size is {}: make them the same",
                                    *global, *given.train_batch));
    }
    given.train_batch = global;
    try {
      config::check_batch_sizes(given, expected_ranks);
    } catch (const Error& error) {
      file_.refuse(key, fmt::format("does not go with the DeepSpeed configuration: {}", error.what()));
    }
  }

  std::optional<int64_t> checked_size(const char* name) const {
    const Json* value = hyperparameter(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer() || *value < 1) {
      file_.refuse(fmt::format("hyperparameters.{}", name),
                   fmt::format("must be a positive integer, it has {}", value->dump()));
    }
    return value->get<int64_t>();
  }

  void read_searcher() {
    if (file_.find_object("searcher") == nullptr) return;
    const std::string metric = file_.text("searcher.metric");
    const Json* smaller = file_.find("searcher.smaller_is_better");
    if (smaller != nullptr && !smaller->is_boolean()) {
      file_.refuse("searcher.smaller_is_better", fmt::format("must be true or false, it has {}", smaller->dump()));
    }
    const host::Result<host::MetricInfo> known = host::metric_info(metric);
    if (!known.ok()) return;
    result_.metric = metric;
    if (smaller != nullptr && smaller->get<bool>() == known->maximise) {
      file_.refuse("searcher.smaller_is_better",
                   fmt::format("is {}, and of {} the {} is best: leave the key out", smaller->dump(), metric,
                               known->maximise ? "largest" : "smallest"));
    }
  }

  // The script would read these keys only when the full training begins, hours later.
  void check_training_keys() {
    check_length("searcher.max_length", 1);
    check_length("min_validation_period", 0);
    check_length("min_checkpoint_period", 0);
    if (const Json* unit = file_.find("scheduling_unit"); unit != nullptr && !unit->is_null())
      integer("scheduling_unit", 0);
    const Json* policy = file_.find("checkpoint_policy");
    if (policy == nullptr || policy->is_null()) return;
    if (policy->is_string() && one_of(policy->get<std::string>(), {"best", "all", "none"})) return;
    file_.refuse("checkpoint_policy", fmt::format("is {}: use best, all or none", policy->dump()));
  }

  // A length is a number, or a number with a unit: {batches: 100}. The script finds 1e3 as 1000.
  void check_length(const std::string& key, int64_t min) {
    const Json* length = file_.find(key);
    if (length == nullptr || length->is_null()) return;
    const bool has_unit = length->is_object() && length->size() == 1;
    const Json& count = has_unit ? length->begin().value() : *length;
    const bool is_known = !has_unit || one_of(length->begin().key(), {"batches", "epochs", "records"});
    const bool is_empty = length->is_object() && length->empty();
    const double number = count.is_number() ? count.get<double>() : -1;
    const bool is_whole = number >= static_cast<double>(min) && number <= INT32_MAX && std::floor(number) == number;
    if (is_known && is_whole) {
      const std::string place = has_unit ? fmt::format("{}.{}", key, length->begin().key()) : key;
      config::set(result_.document, place, static_cast<int64_t>(number));
    }
    if ((is_empty && min == 0) || (is_known && is_whole)) return;
    file_.refuse(key,
                 fmt::format("is {}: give a whole number of at least {}, or one as {{batches: N}}, {{epochs: N}} or "
                             "{{records: N}}",
                             length->dump(), min));
  }

  void report_startup_hook() {
    const fs::path hook = request_.model_dir / "startup-hook.sh";
    std::error_code error;
    if (!fs::exists(hook, error)) return;
    result_.notices.push_back(
        fmt::format("{}: not run, as there is no container to set up: run it once yourself", hook.string()));
  }

  void report_the_rest() {
    report_startup_hook();
    std::vector<std::string> used{"name",
                                  "description",
                                  "entrypoint",
                                  "hyperparameters",
                                  "resources",
                                  "searcher",
                                  "environment",
                                  "resources.slots_per_trial",
                                  "resources.max_slots",
                                  "max_restarts",
                                  "environment.environment_variables"};
    if (result_.metric) used.insert(used.end(), {"searcher.metric", "searcher.smaller_is_better"});
    std::vector<std::string> others = keys_without_effect(file_, used);
    const auto scripts = std::stable_partition(others.begin(), others.end(), [](const std::string& key) {
      // Determined's Python interface reads these keys in the full training.
      return !one_of(key, {"checkpoint_policy", "data", "min_checkpoint_period", "min_validation_period",
                           "optimizations", "perform_initial_validation", "reproducibility", "scheduling_unit",
                           "searcher.max_length", "searcher.metric", "searcher.smaller_is_better"});
    });
    const std::string file = file_.file().string();
    if (scripts != others.begin()) {
      result_.notices.push_back(
          fmt::format("{}: kept, but without effect here: {}", file, fmt::join(others.begin(), scripts, ", ")));
    }
    if (scripts != others.end()) {
      result_.notices.push_back(fmt::format("{}: without effect on the search, kept for the script: {}", file,
                                            fmt::join(scripts, others.end(), ", ")));
    }
  }

  const ExperimentRequest& request_;
  const YamlFile file_;
  Experiment result_;
};

}  // namespace

Experiment read_experiment(const ExperimentRequest& request) { return ExperimentReader(request).read(); }

}  // namespace dsat::cli
