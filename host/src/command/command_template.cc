// Finds the configuration in a command once. Then renders the command for each trial: file names, placeholders, batch
// flags, and the launcher's options.
#include "command/command_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/guarded.h"
#include "command/environment_use.h"
#include "command/hugging_face.h"
#include "command/own_launchers.h"
#include "command/presets.h"
#include "command/refused_forms.h"
#include "dsat/base/numbers.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/host/study.h"
#include "variables/injection.h"

namespace dsat::host {

namespace {

constexpr std::string_view kConfigPlaceholder = "{ds_config}";
constexpr std::string_view kFolderPlaceholder = "{trial_dir}";
constexpr std::pair<std::string_view, const char*> kValuePlaceholders[] = {
    {"{micro_batch}", config::kMicroBatchKey}, {"{accumulation}", config::kAccumulationKey}};

bool has_placeholder(const std::string& text) {
  return text.find(kConfigPlaceholder) != std::string::npos || text.find(kFolderPlaceholder) != std::string::npos;
}

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// Stands for a word of which nothing is left, until the launcher's options are written.
constexpr const char* kEmptied = "{\x01}";

// {KEY} of any key of the trial's configuration with a single value; null and "" leave nothing.
void fill_keys(std::string& token, const Json& config) {
  bool is_filled = false;
  for (size_t at = token.find('{'); at != std::string::npos; at = token.find('{', at)) {
    const size_t end = token.find('}', at);
    if (end == std::string::npos) break;
    const Json* value = config::find(config, token.substr(at + 1, end - at - 1));
    if (value == nullptr || value->is_structured()) {
      ++at;
      continue;
    }
    const std::string text = as_argument(value).value_or("");
    token.replace(at, end + 1 - at, text);
    at += text.size();
    is_filled = true;
  }
  if (is_filled && token.empty()) token = kEmptied;
}

void fill_placeholders(std::string& token, const Json& config, const std::filesystem::path& config_file,
                       const std::filesystem::path& trial_dir) {
  replace_all(token, kConfigPlaceholder, config_file.string());
  replace_all(token, kFolderPlaceholder, trial_dir.string());
  replace_all(token, "{stage}", fmt::to_string(config::zero_stage(config)));
  for (const auto& [placeholder, key] : kValuePlaceholders) {
    if (const auto value = as_argument(config::find(config, key))) replace_all(token, placeholder, *value);
  }
  fill_keys(token, config);
}

void drop_emptied(Argv& argv) { argv.erase(std::remove(argv.begin(), argv.end(), kEmptied), argv.end()); }

bool ends_in_json(const std::string& text) { return text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0; }

// --deepspeed takes a value only in Hugging Face's Trainer. Elsewhere it is a switch before another token.
std::vector<FlagUse> deepspeed_flags_with_value(const Argv& argv, const std::filesystem::path& cwd) {
  std::vector<FlagUse> uses;
  for (const FlagUse& use : find_flag(argv, {"--deepspeed"})) {
    if (use.value >= argv.size()) continue;
    const std::string value = use.read(argv);
    std::error_code error;
    const bool attached = use.value == use.flag;
    if (attached || ends_in_json(value) || std::filesystem::is_regular_file(cwd / value, error)) uses.push_back(use);
  }
  return uses;
}

// Returns the flags that name a configuration. A flag may be the last word, without its value.
std::vector<FlagUse> flags_with_config(const Argv& argv, const LauncherUse& launcher,
                                       const std::filesystem::path& cwd) {
  std::vector<FlagUse> uses = find_flag(argv, {"--deepspeed_config", "--deepspeed-config"});
  if (launcher.kind == Launcher::accelerate) {
    for (const FlagUse& use : launcher_flags(argv, launcher, {"--deepspeed_config_file", "--deepspeed-config-file"})) {
      uses.push_back(use);
    }
  }
  if (uses.empty()) uses = deepspeed_flags_with_value(argv, cwd);
  return uses.empty() ? config_variables(argv) : uses;
}

[[noreturn]] void refuse_missing_value(const Argv& argv) {
  throw Error(fmt::format("the command ends at {}, which needs a value", argv.back()));
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return a.lexically_normal() == b.lexically_normal() || std::filesystem::equivalent(a, b, error);
}

}  // namespace

CommandTemplate::CommandTemplate(CommandRequest request) : request_(std::move(request)) {
  const Argv& argv = request_.argv;
  if (argv.empty()) throw Error("no training command given: put it after --");
  or_throw(find_program(argv[0], request_.cwd, request_.environment));
  launcher_ = find_launcher(argv);
  refuse_forms(argv, launcher_);
  training_yaml_ = find_training_yaml(argv, launcher_, request_.cwd, request_.tuned_keys);
  accelerate_settings_ = read_accelerate_settings(argv, launcher_, request_.cwd, request_.environment,
                                                  training_yaml_ ? training_yaml_->text_at("accelerate_config") : "");
  find_config();
  best_files(Json::object(), "ds_config.json");  // throws if a trial's files cannot be made
  trainer_ = kind_of_trainer();
  for (const FlagUse& use : batch_flags(argv)) {
    if (use.value >= argv.size()) refuse_missing_value(argv);
  }
  map_arguments(std::move(request_.arg_mappings));
}

// Hugging Face's Trainer takes a file; elsewhere --deepspeed is a switch.
bool CommandTemplate::deepspeed_takes_file() const {
  const Argv& argv = request_.argv;
  for (const FlagUse& use : find_flag(argv, {"--deepspeed"})) {
    if (config_use_ && config_use_->flag == use.flag) return true;
    if (std::any_of(further_uses_.begin(), further_uses_.end(),
                    [&](const FlagUse& further) { return further.flag == use.flag; })) {
      return true;
    }
    if (use.value < argv.size() && has_placeholder(use.read(argv))) return true;
  }
  return false;
}

bool CommandTemplate::names_config_by(std::string_view variable) const {
  return config_use_ && request_.argv[config_use_->flag].rfind(std::string(variable) + "=", 0) == 0;
}

Trainer CommandTemplate::kind_of_trainer() const {
  const Argv& argv = request_.argv;
  const Trainer by_flags = find_trainer(argv, launcher_.script(), deepspeed_takes_file());
  // The file decides where the flags are silent.
  if (training_yaml_) return batch_flags(argv).empty() ? Trainer::other : Trainer::batch_flags;
  if (find_framework(argv) == Framework::swift) return Trainer::hugging_face;
  const bool gets_numbers = accelerate_config_ != AccelerateConfig::none;  // the Trainer compares its own with them
  return gets_numbers && runs_trainer(argv, launcher_.script(), request_.cwd) ? Trainer::hugging_face : by_flags;
}

std::optional<int> CommandTemplate::slots_per_trial() const {
  const Argv& argv = request_.argv;
  if (const auto count = command_slots(argv, launcher_)) return count;
  // trl takes accelerate's arguments out of its file, too.
  const auto of_yaml =
      launcher_.mixed && training_yaml_ ? parse_count(training_yaml_->text_at("num_processes")) : std::nullopt;
  if (of_yaml && *of_yaml > 0) return of_yaml;
  if (accelerate_settings_.num_processes) return accelerate_settings_.num_processes;
  return processes_by_variables(argv, request_.environment);
}

Json CommandTemplate::with_own_batch(Json config) const {
  if (training_yaml_) return host::with_own_batch(*training_yaml_, request_.argv, std::move(config));
  const bool is_default = trainer_ == Trainer::hugging_face && find_framework(request_.argv) != Framework::swift;
  return is_default ? with_default_batch(request_.argv, std::move(config)) : config;
}

std::string CommandTemplate::precision() const {
  std::string precision = precision_of_flags(request_.argv);
  if (precision.empty() && training_yaml_) precision = precision_of(*training_yaml_);
  if (precision.empty()) precision = precision_of(request_.argv, launcher_, accelerate_settings_);
  return precision == "fp8" ? "bf16" : precision;
}

std::string CommandTemplate::own_visibility() const {
  const std::string own = host::own_visibility(request_.argv, launcher_);
  if (!own.empty()) return own;
  return script_sets_visible_devices(request_.argv, request_.cwd) ? "CUDA_VISIBLE_DEVICES" : "";
}

void CommandTemplate::map_arguments(std::vector<std::pair<std::string, std::string>> mappings) {
  const Argv& argv = request_.argv;
  for (const auto& [key, flag] : mappings) {
    const std::vector<FlagUse> uses = find_mapped(argv, flag);
    if (!uses.empty() && uses.back().value >= argv.size()) refuse_missing_value(argv);
    if (!uses.empty() || (trainer_ != Trainer::other && is_batch_flag(flag))) continue;
    throw Error(
        fmt::format("the argument mapping of {} names {}, which the command does not have: add it there with a "
                    "value, or remove the mapping",
                    key, flag));
  }
  request_.arg_mappings = std::move(mappings);
}

void CommandTemplate::learn_from(const Json& user_config) {
  if (deepspeed_takes_file() && has_auto_batch_size(user_config)) trainer_ = Trainer::hugging_face;
}

// Returns the flags that name a configuration, except those whose value is a placeholder.
std::vector<FlagUse> CommandTemplate::config_flags() const {
  const Argv& argv = request_.argv;
  std::vector<FlagUse> uses = flags_with_config(argv, launcher_, request_.cwd);
  if (std::any_of(uses.begin(), uses.end(), [&](const FlagUse& use) { return use.value >= argv.size(); })) {
    throw Error(fmt::format("the command ends at {}: give it the configuration file", argv.back()));
  }
  uses.erase(std::remove_if(uses.begin(), uses.end(), [&](const FlagUse& u) { return has_placeholder(u.read(argv)); }),
             uses.end());
  return uses;
}

void CommandTemplate::find_config() {
  const Argv& argv = request_.argv;
  const std::vector<FlagUse> uses = config_flags();
  if (!uses.empty()) config_use_ = uses[0];
  for (size_t i = 1; i < uses.size(); ++i) {
    const std::string first = uses[0].read(argv), further = uses[i].read(argv);
    if (!same_file(request_.cwd / first, request_.cwd / further)) {
      throw Error(fmt::format("the command names more than one configuration ({} and {}): keep one", first, further));
    }
    further_uses_.push_back(uses[i]);
  }
  for (const FlagUse& use : deepspeed_flags_with_value(argv, request_.cwd)) {
    const bool is_further = launcher_.kind == Launcher::accelerate && config_use_ && use.flag != config_use_->flag;
    if (is_further && same_file(request_.cwd / use.read(argv), request_.cwd / config_use_->read(argv))) {
      further_uses_.push_back(use);
    }
  }
  if (request_.config_by_environment) return take_given_config();
  // This is checked even if an argument names the file, because the script may read only the variable.
  config_by_variable_ = reads_config_variable(argv, request_.cwd);
  if (!config_use_) find_word_of_config();
  if (config_use_) return take_config_of_command();
  if (find_config_of_yaml() || find_config_of_accelerate()) return;
  if (request_.inject) return take_given_config();
  const bool is_given = request_.ds_config && !request_.ds_config->empty();
  if (!is_given && request_.may_lack_configuration) return;
  if (!request_.ds_config) refuse_no_config();
  if (training_yaml_ && training_yaml_->takes_keys) {  // each copy names the trial's
    training_yaml_->config_name = request_.ds_config->string();
    config_file_ = request_.cwd / *request_.ds_config;
    return;
  }
  if (!config_by_variable_ && std::none_of(argv.begin(), argv.end(), has_placeholder)) {
    throw Error(fmt::format(
        "--ds-config {}: the command does not use it: put {{ds_config}} (or {{trial_dir}}) where the command takes "
        "the file, or read the environment's {} in the script that the command names",
        request_.ds_config->string(), kConfigVariable));
  }
  config_file_ = request_.cwd / *request_.ds_config;
}

// Words without a file's name: a preset of the framework, and `deepspeed=FILE` behind a training YAML.
void CommandTemplate::find_word_of_config() {
  const Argv& argv = request_.argv;
  for (const FlagUse& use : find_flag(argv, {"--deepspeed"})) {
    const std::string value = use.value < argv.size() ? use.read(argv) : "";
    const bool is_name = !value.empty() && value[0] != '-' && !has_placeholder(value);
    if (is_name && find_preset(argv, value, "--deepspeed", request_.cwd, request_.environment)) config_use_ = use;
  }
  if (!training_yaml_ || config_use_) return;
  for (const FlagUse& use : find_mapped(argv, "deepspeed=")) config_use_ = use;
}

// --ds-config may name another base than the command.
void CommandTemplate::take_place(const std::filesystem::path& own, Json in_place) {
  const std::optional<std::filesystem::path>& given = request_.ds_config;
  const bool is_own = !given || given->empty() || same_file(request_.cwd / *given, own);
  config_file_ = is_own ? own : request_.cwd / *given;
  if (is_own) config_in_place_ = std::move(in_place);
}

bool CommandTemplate::find_config_of_yaml() {
  if (!training_yaml_ || !training_yaml_->has_configuration()) return false;
  const TrainingYaml& yaml = *training_yaml_;
  if (yaml.config.is_object()) {
    take_place(yaml.file, yaml.config);
  } else {
    take_place(existing_config(yaml.config_name, yaml.config_place + ": deepspeed:"), nullptr);
  }
  if (starts_deepspeed(request_.argv, launcher_, accelerate_settings_)) refuse_fields_beside_file(accelerate_settings_);
  return true;
}

bool CommandTemplate::find_config_of_accelerate() {
  const AccelerateSettings& settings = accelerate_settings_;
  if (!settings.problem.empty()) throw Error(settings.problem);
  if (auto built = config_of_fields(request_.argv, launcher_, settings)) {
    accelerate_config_ = AccelerateConfig::fields;
    take_place(settings.file, std::move(*built));
    return true;
  }
  if (settings.deepspeed_config_file.empty()) return false;
  require_deepspeed_of_accelerate();
  take_place(request_.cwd / settings.deepspeed_config_file, nullptr);
  return true;
}

// The configuration goes to accelerate, which must start DeepSpeed with it.
void CommandTemplate::require_deepspeed_of_accelerate() {
  if (!accelerate_settings_.problem.empty()) throw Error(accelerate_settings_.problem);
  if (!starts_deepspeed(request_.argv, launcher_, accelerate_settings_)) {
    throw Error(why_no_deepspeed(accelerate_settings_));
  }
  config_of_fields(request_.argv, launcher_, accelerate_settings_);  // throws for fields beside the file
  accelerate_config_ = AccelerateConfig::file;
}

// Returns the file of a name, which may be a framework's preset. Throws Error if there is none.
std::filesystem::path CommandTemplate::existing_config(const std::string& name, const std::string& where) const {
  std::error_code error;
  if (std::filesystem::exists(request_.cwd / name, error)) return request_.cwd / name;
  if (!ends_in_json(name)) {
    if (const auto preset = find_preset(request_.argv, name, where, request_.cwd, request_.environment)) return *preset;
  }
  throw Error(fmt::format("{} {}: no such file in {}", where, name, request_.cwd.string()));
}

// What its users add for DeepSpeed; empty: no framework.
static std::string flag_of_framework(Framework framework) {
  if (framework == Framework::trl) return "--accelerate_config zero2 to it";
  if (framework == Framework::swift) return "--deepspeed zero2 to it";
  return framework == Framework::none ? "" : "--deepspeed FILE.json to it";
}

void CommandTemplate::refuse_no_config() const {
  if (const auto hidden = hidden_config(request_.argv, request_.cwd)) {
    const std::string place =
        hidden->script.empty() ? "in a text for a shell: put {ds_config} in its place there"
                               : fmt::format("in {}: put \"${}\" in its place there", hidden->script, kConfigVariable);
    throw Error(fmt::format("the command names its configuration {} {}, and give --ds-config {}", hidden->file, place,
                            hidden->file));
  }
  const std::string missing = missing_yaml(request_.argv, launcher_, request_.cwd);
  if (!missing.empty()) throw Error(fmt::format("no file '{}' in {}", missing, request_.cwd.string()));
  if (training_yaml_) {
    throw Error(fmt::format(
        "{} names no DeepSpeed configuration: add `deepspeed: FILE.json` to it{}", training_yaml_->file.string(),
        training_yaml_->takes_keys ? ", or give --ds-config FILE.json ({} in it begins at DeepSpeed's defaults)" : ""));
  }
  const AccelerateSettings& settings = accelerate_settings_;
  const bool is_other = !settings.distributed_type.empty() && settings.distributed_type != "DEEPSPEED";
  if (is_other) throw Error(why_no_deepspeed(settings));
  std::string flag = flag_of_framework(find_framework(request_.argv));
  if (flag.empty() && launcher_.kind == Launcher::accelerate)
    flag = "--use_deepspeed --deepspeed_config_file FILE before the script";
  throw Error(fmt::format(
      "the command names no DeepSpeed configuration: add {}, or give --ds-config FILE and put {{ds_config}} "
      "where the command takes it or read DSAT_DS_CONFIG in the script; if the script builds it in Python, give "
      "--inject",
      flag.empty() ? "--deepspeed_config FILE to it" : flag));
}

void CommandTemplate::take_config_of_command() {
  const std::string value = config_use_->read(request_.argv);
  if (value.empty()) {
    throw Error(fmt::format("{} is empty: give it the configuration file", request_.argv[config_use_->flag]));
  }
  config_file_ = request_.cwd / value;
  std::error_code error;
  if (!ends_in_json(value) && !std::filesystem::exists(config_file_, error)) {
    const std::string& flag = request_.argv[config_use_->flag];
    const auto preset =
        find_preset(request_.argv, value, flag.substr(0, flag.find('=')), request_.cwd, request_.environment);
    config_file_ = preset.value_or(config_file_);
  }
  if (is_flag_of_accelerate(*config_use_)) {
    // With a flag of its own the script starts DeepSpeed itself.
    const bool is_only = further_uses_.empty();
    if (is_only || starts_deepspeed(request_.argv, launcher_, accelerate_settings_)) require_deepspeed_of_accelerate();
  } else if (deepspeed_takes_file() && starts_deepspeed(request_.argv, launcher_, accelerate_settings_)) {
    refuse_fields_beside_file(accelerate_settings_);
  }
  if (!request_.ds_config || same_file(request_.cwd / *request_.ds_config, config_file_)) return;
  throw Error(
      fmt::format("two configurations: --ds-config {} and {} in the command: keep one (the command may say "
                  "{{ds_config}} where it takes it)",
                  request_.ds_config->string(), value));
}

void CommandTemplate::take_given_config() {
  if (request_.ds_config && !request_.ds_config->empty()) config_file_ = request_.cwd / *request_.ds_config;
}

void CommandTemplate::apply_config(Argv& argv, const Json& config, const std::filesystem::path& config_file,
                                   const std::filesystem::path& trial_dir, bool is_best) const {
  if (training_yaml_) {
    const char* name = is_best ? training_yaml_->name_of_best() : training_yaml_->name_in_trial();
    training_yaml_->use.write(argv, (trial_dir / name).string());
    follow_in_words(argv, *training_yaml_, config, config_file);
  }
  for (std::string& token : argv) fill_placeholders(token, config, config_file, trial_dir);
  if (config_use_) config_use_->write(argv, config_file.string());
  for (const FlagUse& use : further_uses_) use.write(argv, config_file.string());

  follow_configuration(argv, launcher_.script(), trainer_, config, request_.arg_mappings);
  for (const auto& [key, flag] : request_.arg_mappings) {
    for (const FlagUse& use : find_mapped(argv, flag)) {
      if (const auto value = as_argument(config::find(config, key), use.read(argv))) use.write(argv, *value);
    }
  }
}

Argv CommandTemplate::render(const TrialContext& trial) const {
  Argv argv = request_.argv;
  apply_config(argv, trial.config, trial.config_file, trial.trial_dir, false);
  apply_launcher(argv, trial);
  drop_emptied(argv);
  return argv;
}

Argv CommandTemplate::render_best(const Json& config, const std::filesystem::path& config_file,
                                  const std::optional<Size>& size) const {
  Argv argv = request_.argv;
  // In a trial's folder the configuration has another name.
  for (std::string& token : argv) replace_all(token, "{trial_dir}/ds_config.json", config_file.string());
  const std::filesystem::path folder = config_file.parent_path();
  apply_config(argv, config, config_file, folder, true);
  if (size) apply_size(argv, *size);
  name_config_of_accelerate(argv, config_file);
  name_files(argv, best_files(config, config_file, size), folder);
  apply_torchrun_variables(argv, 0, request_.environment);
  if (config_by_variable_) {
    argv.insert(argv.begin(), {"env", fmt::format("{}={}", kConfigVariable, config_file.string())});
  }
  drop_emptied(argv);
  if (request_.inject) argv = with_injection(argv, config_file, folder / kHookFolder, request_.environment);
  return argv;
}

// The configuration that a training YAML or accelerate's settings name. A file that cannot be read is reported later.
static std::optional<std::filesystem::path> config_of_files(const Argv& command, const LauncherUse& launcher,
                                                            const std::filesystem::path& cwd) try {
  const auto yaml = find_training_yaml(command, launcher, cwd);
  if (yaml && yaml->has_configuration()) {
    return yaml->config_name.empty() ? std::nullopt : std::optional(cwd / yaml->config_name);
  }
  const std::string named =
      read_accelerate_settings(command, launcher, cwd, current_environment()).deepspeed_config_file;
  return named.empty() ? std::nullopt : std::optional(cwd / named);
} catch (const Error&) {
  return std::nullopt;
}

std::optional<std::filesystem::path> config_file_of(const std::vector<std::string>& command,
                                                    const std::filesystem::path& cwd) {
  if (command.empty()) return std::nullopt;
  const LauncherUse launcher = find_launcher(command);
  const std::vector<FlagUse> uses = flags_with_config(command, launcher, cwd);
  if (uses.empty()) return config_of_files(command, launcher, cwd);
  for (const FlagUse& use : uses) {
    if (use.value >= command.size() || has_placeholder(use.read(command))) return std::nullopt;
    if (!same_file(cwd / uses[0].read(command), cwd / use.read(command))) return std::nullopt;
  }
  return cwd / uses[0].read(command);
}

}  // namespace dsat::host
