#include "command.h"

#include <algorithm>
#include <string_view>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/host/study.h"

namespace dsat::host {

namespace {

constexpr std::string_view kConfigPlaceholder = "{ds_config}";
constexpr std::string_view kFolderPlaceholder = "{trial_dir}";

bool has_placeholder(const std::string& text) {
  return text.find(kConfigPlaceholder) != std::string::npos || text.find(kFolderPlaceholder) != std::string::npos;
}

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::vector<FlagUse> micro_batch_flags(const Argv& argv) {
  return find_flag(argv, {"--per_device_train_batch_size", "--per-device-train-batch-size"});
}
std::vector<FlagUse> accumulation_flags(const Argv& argv) {
  return find_flag(argv, {"--gradient_accumulation_steps", "--gradient-accumulation-steps"});
}

bool ends_in_json(const std::string& text) { return text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0; }

// --deepspeed takes a value only in Hugging Face's Trainer; elsewhere it is a switch and the next token its neighbour.
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

// DeepSpeed's tuner in a trial would start trials of its own.
Status refuse_autotuning(const Argv& argv, const LauncherUse& launcher) {
  if (launcher.kind != Launcher::deepspeed || launcher_tokens(argv, launcher, {"--autotuning"}).empty())
    return Status();
  return Status::invalid(
      "the command has deepspeed's own --autotuning, which would tune inside every trial: type dsat-host --autotuning "
      "tune SCRIPT ARGS..., or leave it out of the command");
}

// A configuration value as a command-line argument; nullopt: there is nothing to pass on, "auto" least of all.
std::optional<std::string> as_argument(const Json* value) {
  if (value == nullptr || value->is_null() || (value->is_string() && *value == "auto")) return std::nullopt;
  return value->is_string() ? value->get<std::string>() : value->dump();
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return a.lexically_normal() == b.lexically_normal() || std::filesystem::equivalent(a, b, error);
}

std::string include_argument(const std::vector<Slot>& slots) {
  // The deepspeed launcher counts this machine's devices from 0, whatever the visibility variable calls them.
  const bool ordinals = std::all_of(slots.begin(), slots.end(), [](const Slot& s) { return s.ordinal.has_value(); });
  std::string list;
  for (const Slot& slot : slots)
    list += (list.empty() ? "" : ",") + (ordinals ? std::to_string(*slot.ordinal) : slot.id);
  return "localhost:" + list;
}

}  // namespace

Result<CommandTemplate> CommandTemplate::parse(CommandRequest request) {
  if (request.argv.empty()) return Status::invalid("no training command given: put it after --");
  const auto program = find_program(request.argv[0], request.cwd, request.environment);
  if (!program.ok()) return program.status();
  CommandTemplate command(std::move(request));
  command.launcher_ = find_launcher(command.request_.argv);
  Status status = refuse_autotuning(command.request_.argv, command.launcher_);
  if (status.ok()) status = command.find_config();
  if (!status.ok()) return status;
  const Argv& argv = command.request_.argv;
  command.hugging_face_ =
      !micro_batch_flags(argv).empty() || !accumulation_flags(argv).empty() || !command.request_.arg_mappings.empty();
  for (const auto& uses : {micro_batch_flags(argv), accumulation_flags(argv)}) {
    if (!uses.empty() && uses.back().value >= argv.size()) {
      return Status::invalid("the command ends at " + argv.back() + ", which takes a value");
    }
  }
  return command;
}

Status CommandTemplate::find_config() {
  const Argv& argv = request_.argv;
  const std::filesystem::path& cwd = request_.cwd;
  std::vector<FlagUse> uses = find_flag(argv, {"--deepspeed_config", "--deepspeed-config"});
  if (!uses.empty() && uses.back().value >= argv.size()) {
    return Status::invalid("the command ends at " + argv.back() + ": give it the configuration file");
  }
  if (uses.empty()) uses = deepspeed_flags_with_value(argv, cwd);
  uses.erase(std::remove_if(uses.begin(), uses.end(), [&](const FlagUse& u) { return has_placeholder(u.read(argv)); }),
             uses.end());
  if (uses.size() > 1) {
    return Status::invalid("the command names more than one configuration (" + uses[0].read(argv) + " and " +
                           uses[1].read(argv) + "): keep one");
  }
  if (!uses.empty()) {
    config_use_ = uses[0];
    const std::string value = uses[0].read(argv);
    if (request_.config_by_environment) return take_given_config();
    if (value.empty()) return Status::invalid(argv[uses[0].flag] + " is empty: give it the configuration file");
    config_file_ = cwd / value;
    if (request_.ds_config && !same_file(cwd / *request_.ds_config, config_file_)) {
      return Status::invalid("two configurations: --ds-config " + request_.ds_config->string() + " and " + value +
                             " in the command: keep one (the command may say {ds_config} where it takes it)");
    }
    return Status();
  }
  if (request_.config_by_environment) return take_given_config();
  if (!request_.ds_config) {
    return Status::invalid(
        "the command names no DeepSpeed configuration: add --deepspeed_config FILE to it, or give --ds-config FILE and "
        "put {ds_config} where the command takes it");
  }
  if (std::none_of(argv.begin(), argv.end(), has_placeholder)) {
    return Status::invalid("--ds-config " + request_.ds_config->string() +
                           ": the command does not say where it goes: put {ds_config} (or {trial_dir}) into it");
  }
  config_file_ = cwd / *request_.ds_config;
  return Status();
}

Status CommandTemplate::take_given_config() {
  if (request_.ds_config && !request_.ds_config->empty()) config_file_ = request_.cwd / *request_.ds_config;
  return Status();
}

void CommandTemplate::apply_config(Argv& argv, const Json& config, const std::filesystem::path& config_file,
                                   const std::filesystem::path& trial_dir) const {
  for (std::string& token : argv) {
    replace_all(token, kConfigPlaceholder, config_file.string());
    replace_all(token, kFolderPlaceholder, trial_dir.string());
  }
  if (config_use_) config_use_->write(argv, config_file.string());

  const auto micro_batch = as_argument(config::find(config, config::kMicroBatchKey));
  const auto accumulation = as_argument(config::find(config, config::kAccumulationKey));
  const auto micro_flags = micro_batch_flags(argv), accumulation_uses = accumulation_flags(argv);
  for (const FlagUse& use : micro_flags) {
    if (micro_batch) use.write(argv, *micro_batch);
  }
  for (const FlagUse& use : accumulation_uses) {
    if (accumulation) use.write(argv, *accumulation);
  }
  // The Trainer takes a missing flag for 1 and refuses a configuration that says otherwise.
  if (!micro_flags.empty() && accumulation_uses.empty() && accumulation && *accumulation != "1") {
    argv.insert(argv.end(), {"--gradient_accumulation_steps", *accumulation});
  }
  for (const auto& [key, flag] : request_.arg_mappings) {
    const auto value = as_argument(config::find(config, key));
    if (!value) continue;
    const auto uses = find_flag(argv, flag);
    if (uses.empty()) argv.insert(argv.end(), {flag, *value});
    for (const FlagUse& use : uses) {
      if (use.value < argv.size()) use.write(argv, *value);
    }
  }
}

void CommandTemplate::apply_launcher(Argv& argv, const TrialContext& trial) const {
  if (launcher_.kind == Launcher::none) return;
  std::vector<size_t> dropped;
  Argv inserted{"--master_port", std::to_string(trial.port)};
  if (launcher_.kind == Launcher::deepspeed) {
    // It ignores MASTER_PORT, and CUDA_VISIBLE_DEVICES as soon as it is told a number of devices.
    dropped = launcher_tokens(argv, launcher_,
                              {"--num_gpus", "--num_nodes", "--include", "-i", "--exclude", "-e", "--master_port"});
    inserted.insert(inserted.end(), {"--include", include_argument(trial.slots)});
  } else {
    dropped = launcher_tokens(argv, launcher_, {"--master_port", "--master-port"});
  }
  Argv result(argv.begin(), argv.begin() + static_cast<std::ptrdiff_t>(launcher_.begin));
  result.insert(result.end(), inserted.begin(), inserted.end());
  for (size_t i = launcher_.begin; i < argv.size(); ++i) {
    if (std::find(dropped.begin(), dropped.end(), i) == dropped.end()) result.push_back(argv[i]);
  }
  argv = std::move(result);
}

Argv CommandTemplate::render(const TrialContext& trial) const {
  Argv argv = request_.argv;
  apply_config(argv, trial.config, trial.config_file, trial.trial_dir);
  apply_launcher(argv, trial);
  return argv;
}

Argv CommandTemplate::render_best(const Json& config, const std::filesystem::path& config_file) const {
  Argv argv = request_.argv;
  // In a trial's folder the configuration has another name than here.
  for (std::string& token : argv) replace_all(token, "{trial_dir}/ds_config.json", config_file.string());
  apply_config(argv, config, config_file, config_file.parent_path());
  return argv;
}

std::optional<std::filesystem::path> config_file_of(const std::vector<std::string>& command,
                                                    const std::filesystem::path& cwd) {
  std::vector<FlagUse> uses = find_flag(command, {"--deepspeed_config", "--deepspeed-config"});
  if (uses.empty()) uses = deepspeed_flags_with_value(command, cwd);
  if (uses.size() != 1 || uses[0].value >= command.size() || has_placeholder(uses[0].read(command))) {
    return std::nullopt;
  }
  return cwd / uses[0].read(command);
}

}  // namespace dsat::host
