// One function for each form.
#include "command/refused_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "command/own_launchers.h"
#include "dsat/base/numbers.h"
#include "dsat/error.h"

namespace dsat::host {
namespace {

// DeepSpeed's tuner in a trial would start its own trials.
void refuse_autotuning(const Argv& argv, const LauncherUse& launcher) {
  if (launcher.kind != Launcher::deepspeed || launcher_tokens(argv, launcher, {"--autotuning"}).empty()) return;
  throw Error(
      "the command has deepspeed's own --autotuning, which would tune inside every trial: use dsat-host --autotuning "
      "tune SCRIPT ARGS..., or leave it out of the command");
}

bool is_false(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word == "false" || word == "f" || word == "no" || word == "n" || word == "0";
}

// The Trainer would halve the batch of a trial until it fits, whatever its configuration asks for.
void refuse_batch_finder(const Argv& argv, const LauncherUse& launcher) {
  for (const FlagUse& use : find_flag_in_any_spelling(argv, "--auto_find_batch_size")) {
    const bool is_off = use.value < argv.size() && is_false(use.read(argv));
    if (use.flag < launcher.end || is_off) continue;
    throw Error(
        fmt::format("the command has {}, which changes the batch of a trial by itself: leave it out, dsat-host finds "
                    "the batch size "
                    "that is the fastest",
                    argv[use.flag]));
  }
}

// The launcher ends with an error: "Cannot specify num_nodes/gpus with include/exclude".
void refuse_filter_and_count(const Argv& argv, const LauncherUse& launcher) {
  if (launcher.kind != Launcher::deepspeed) return;
  const auto filters = launcher_flags(argv, launcher, {"--include", "-i", "--exclude", "-e"});
  for (const FlagUse& use : launcher_flags(argv, launcher, {"--num_gpus", "--num_accelerators", "--num_nodes"})) {
    const bool is_count = use.value < launcher.end && parse_count(use.read(argv));
    if (filters.empty() || !is_count) continue;
    throw Error(fmt::format("the command has {} beside {}, which the deepspeed launcher refuses: keep one",
                            argv[filters[0].flag], argv[use.flag]));
  }
}

// `deepspeed` starts it on each node, with a list of all nodes and their devices.
void refuse_inner_launcher(const Argv& argv) {
  const auto is_inner = [](const std::string& word) { return word == "deepspeed.launcher.launch"; };
  if (std::none_of(argv.begin(), argv.end(), is_inner)) return;
  throw Error(
      "the command starts deepspeed.launcher.launch, which the launcher starts on each node with its --world_info: "
      "give "
      "the launcher itself, as in deepspeed --num_gpus N SCRIPT");
}

}  // namespace

void refuse_forms(const Argv& argv, const LauncherUse& launcher) {
  refuse_autotuning(argv, launcher);
  refuse_inner_launcher(argv);
  refuse_filter_and_count(argv, launcher);
  refuse_batch_finder(argv, launcher);
}

void refuse_part_of_a_job(const Argv& argv, const LauncherUse& launcher, const Environment& environment) {
  if (launcher.wrapper) return;
  const auto refuse = [](const std::string& what, const char* instead) {
    throw Error(
        fmt::format("the command has {}: it starts the ranks of one node, and the others wait for the same "
                    "command elsewhere, which trials cannot; {}",
                    what, instead));
  };
  const auto several = [&](std::initializer_list<std::string_view> names) {
    const auto count = launcher_value(argv, launcher, names);
    return count && parse_count(*count).value_or(0) > 1 ? *count : "";
  };
  if (const std::string nodes = nodes_by_variable(argv, environment); !nodes.empty()) {
    refuse("NNODES=" + nodes, "give one node (NNODES=1)");
  }
  if (launcher.kind == Launcher::deepspeed) {
    for (const char* option : {"--no_ssh", "--node_rank"}) {
      if (launcher_tokens(argv, launcher, {option}).empty()) continue;
      refuse(option, "leave it out, and let the launcher reach the hosts of --hostfile");
    }
  } else if (launcher.kind == Launcher::accelerate) {
    const std::string machines = several({"--num_machines", "--num-machines"});
    if (!machines.empty()) {
      refuse("--num_machines " + machines,
             "give one machine (--num_machines 1 and its --num_processes), or --runner slurm");
    }
  } else if (launcher.kind == Launcher::torchrun) {
    const bool has_rank = !launcher_flags(argv, launcher, {"--node_rank", "--node-rank"}).empty();
    const std::string nodes = several({"--nnodes"});
    if (has_rank && !nodes.empty()) {
      refuse("--nnodes " + nodes + " and --node_rank", "give one node (--nnodes 1), or --runner slurm");
    }
  }
}

}  // namespace dsat::host
