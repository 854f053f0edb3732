// Declares the options of the deepspeed launcher in one table, and writes the given ones into the launcher's command.
// The launcher spells names with underscores; dsat-host takes both spellings.
#include "deepspeed/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "dsat/cli/read_value.h"
#include "dsat/error.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGroup = "DeepSpeed's form: --autotuning tune [options] SCRIPT ARGS...";

// An option that only this form takes. dsat-host itself has --num_gpus, --hostfile, --include and the like.
struct LauncherOption {
  const char* name;        // as the launcher spells it, without dashes
  const char* value_name;  // empty: a switch
  const char* help;        // empty: not in --help
};
constexpr LauncherOption kLauncherOptions[] = {
    {"master_port", "PORT", "port of the training with the best configuration; trials get their own"},
    {"master_addr", "ADDRESS", ""},
    {"launcher", "NAME", "what starts processes on other hosts: pdsh, openmpi, mpich, impi, slurm, mvapich, jsrun"},
    {"launcher_args", "ARGS", ""},
    {"module", "", "SCRIPT is a Python module"},
    {"no_python", "", "SCRIPT is a program of its own"},
    {"no_local_rank", "", ""},
    {"min_elastic_nodes", "N", ""},
    {"max_elastic_nodes", "N", ""},
    {"elastic_training", "", ""},
    {"node_rank", "N", ""},
    {"force_multi", "", ""},
    {"save_pid", "", ""},
    {"enable_each_rank_log", "DIR", ""},
    {"bind_cores_to_rank", "", ""},
    {"bind_core_list", "LIST", ""},
    {"ssh_port", "PORT", ""},
    {"comment", "TEXT", ""},
    {"no_ssh", "", ""},
    {"no_ssh_check", "", ""},
    {"venv_script", "FILE", ""},
};

std::string hyphenated(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool given(const Values& values, const char* name) { return values.given(hyphenated(name)); }

std::vector<const LauncherOption*> given_options(const Values& values) {
  std::vector<const LauncherOption*> options;
  for (const LauncherOption& known : kLauncherOptions) {
    if (given(values, known.name)) options.push_back(&known);
  }
  return options;
}

// The launcher ignores the case of the name; its own help spells OpenMPI.
void check_launcher_name(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  cli_kit::read_choice("--launcher", name, {"pdsh", "openmpi", "mpich", "impi", "slurm", "mvapich", "jsrun"});
}

}  // namespace

void add_deepspeed_options(OptionSet& set) {
  set.add_group(kGroup,
                {Option::choice("autotuning", {"tune", "run"}, "find the best configuration; run: and train with it")});
  for (const LauncherOption& known : kLauncherOptions) {
    const bool is_switch = *known.value_name == '\0';
    Option option = is_switch ? Option::toggle(hyphenated(known.name), known.help)
                              : Option::text(hyphenated(known.name), known.value_name, known.help);
    if (!is_switch) option.absent_values = {""};
    option.hidden = *known.help == '\0';
    set.add_group(kGroup, {std::move(option)});
  }
}

std::optional<Autotuning> autotuning_of(const Values& values) {
  const auto mode = values.text("autotuning");
  if (mode) return *mode == "run" ? Autotuning::run : Autotuning::tune;
  for (const LauncherOption* known : given_options(values)) {
    throw Error(fmt::format(
        "--{0} is an option of the deepspeed launcher: type dsat-host --autotuning tune --{0} ... SCRIPT, or "
        "dsat-host -- deepspeed --{0} ... SCRIPT",
        known->name));
  }
  return std::nullopt;
}

Tokens deepspeed_command(const Values& values, const Tokens& rest, const fs::path& cwd) {
  if (rest.empty()) throw Error("no SCRIPT to tune: type dsat-host --autotuning tune [options] SCRIPT ARGS...");
  std::error_code ignored;
  if (!given(values, "module") && !given(values, "no_python") && !fs::exists(cwd / rest.front(), ignored)) {
    throw Error(fmt::format(
        "no script '{}': with --autotuning the first word after the options is the script, without 'deepspeed'",
        rest.front()));
  }
  if (const auto launcher = values.text("launcher")) check_launcher_name(*launcher);
  Tokens command{"deepspeed"};
  for (const LauncherOption* known : given_options(values)) {
    command.push_back(fmt::format("--{}", known->name));
    const std::string value = values.text(hyphenated(known->name)).value_or("");
    if (value.rfind('-', 0) == 0) {
      command.back() += fmt::format("={}", value);  // as a word of its own it would be an option to the launcher
    } else if (*known->value_name != '\0') {
      command.push_back(value);
    }
  }
  if (values.given("account") && values.text("runner") != "slurm") {
    command.insert(command.end(), {"--account", *values.text("account")});
  }
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

}  // namespace dsat::cli
