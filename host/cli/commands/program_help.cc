// The one screen is written by hand, so that it stays one; the other two come from the declarations of the options.
#include "commands/program_help.h"

#include <fmt/format.h>

#include "commands/host_options.h"
#include "commands/subcommand.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host [options] [--] COMMAND...\n"
    "       dsat-host --autotuning tune|run [options] SCRIPT ARGS...  like deepspeed\n"
    "       dsat-host [METHOD] EXPERIMENT.yaml MODEL_DIR [options]    like Determined\n"
    "       dsat-host --runner sim --sim FILE [options]               a simulation\n"
    "\n"
    "Finds the fastest ZeRO configuration of a training command by running short\n"
    "trials of it.\n"
    "\n"
    "  dsat-host -- deepspeed train.py --deepspeed_config ds_config.json\n"
    "\n";

constexpr const char* kUsedMost =
    "The options that most people use; they end before the first word of COMMAND:\n"
    "  --searcher PLUGIN       guided, asha, binary, random, grid or a plugin's path\n"
    "  -m, --metric NAME       optimise FLOPS_per_gpu, throughput, latency, ...\n"
    "  -z, --zero-stages 1 2   ZeRO stages to search, of 0 1 2 3\n"
    "  --global-batch N        fixed train_batch_size\n"
    "  --space FILE            further keys to tune and their values, as JSON\n"
    "  --arg-mapping KEY=FLAG  give a flag of COMMAND a configuration key's value\n"
    "  -mt, --max-trials N     trials to run at most\n"
    "  --time-budget TIME      end the search after this long: 90s, 15m, 2h\n"
    "  --slots-per-trial N     devices of one trial\n"
    "  --device-memory SIZE    memory of one device: 80GB, 512MiB\n"
    "  -H, --hostfile FILE     several hosts and their slots\n"
    "  --runner NAME           where trials run: local, pilot, slurm, sim\n"
    "  --output-dir DIR        the run directory\n"
    "  --json                  the result as one JSON object\n"
    "\n";

constexpr const char* kSubCommands =
    "Sub-commands; DIR is the run directory of a study:\n"
    "  resume DIR              continue a study\n"
    "  show DIR                print a study and its trials\n"
    "  best DIR                print the best configuration\n"
    "  report DIR, serve DIR   a study as a page: a file, or live in your browser\n"
    "  export DIR              a study for TensorBoard, MLflow, Prometheus or as CSV\n"
    "  check DIR               is the journal of a study sound?\n"
    "  plugins, validate FILE  list searchers and profilers, check one\n"
    "  new-plugin NAME         begin a searcher of your own\n"
    "  completion SHELL, man   completion of bash, zsh or fish; the manual page\n"
    "  estimate                memory of each ZeRO stage, without a trial\n"
    "  space COMMAND...        what would be searched, without a trial\n"
    "\n";

constexpr const char* kMore = "More: --help all, --searcher NAME --help, METHOD --help, SUB-COMMAND --help.\n";

// The options that `set` has beside those of dsat-host itself.
OptionSet plugin_options(OptionSet set) {
  const OptionSet of_host = tune_options();
  for (const Option& option : of_host.options()) set.remove(option.name);
  return set;
}

}  // namespace

void print_program_help(const OptionSet& set, const Preview& wanted, Console& console) {
  if (wanted.help_all) {
    print_help(fmt::format("{}{}", kUsageText, kSubCommands), set, console);
  } else if (wanted.searcher || wanted.profiler) {
    print_help("Usage: dsat-host [options] [--] COMMAND...\n\n", plugin_options(set), console);
    console.print("--help has the options of dsat-host.\n");
  } else {
    console.print(fmt::format("{}{}{}{}", kUsageText, kUsedMost, kSubCommands, kMore));
  }
}

}  // namespace dsat::cli
