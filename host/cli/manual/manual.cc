// dsat-host man, dsat-host completion SHELL: the manual page and the completion of a shell, made from the options that
// the commands declare.
#include "dsat/cli/manual.h"

#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

using cli_kit::ManualCommand;
using cli_kit::Operand;

constexpr const char* kUsageOfMan =
    "Usage: dsat-host man\n"
    "\n"
    "Prints the manual page, for man -l - or a folder of MANPATH.\n"
    "\n";
constexpr const char* kUsageOfCompletion =
    "Usage: dsat-host completion bash|zsh|fish\n"
    "\n"
    "Prints what a shell completes command lines of dsat-host with. For this session of bash:\n"
    "  source <(dsat-host completion bash)\n"
    "\n";

constexpr const char* kDescription =
    "Finds the fastest ZeRO configuration of a training command that uses DeepSpeed or another form of ZeRO, by "
    "running short trials of it.\n"
    "\n"
    "The study's folder, dsat-results/NAME, has best_ds_config.json to train with, best_cmd.txt, summary.txt, the page "
    "report.html, the journal, and a folder for each trial.\n";

constexpr const char* kEnd =
    ".SH EXIT STATUS\n"
    ".TP\n0\na best configuration was found, or the sub-command did what it was asked\n"
    ".TP\n1\nthe study ended without one, or the script is at fault\n"
    ".TP\n2\nwrong usage or configuration; nothing was run\n"
    ".TP\n3\ninterrupted; dsat\\-host resume goes on\n"
    ".TP\n4\ndsat\\-host itself or a plugin failed\n"
    ".SH ENVIRONMENT\n"
    ".TP\nDSAT_PLUGIN_PATH\nfolders with plugins, separated by colons\n"
    ".TP\nDSAT_PYTHON\nthe Python that runs searchers in Python\n"
    ".SH EXAMPLE\n.nf\n"
    "dsat\\-host \\-\\- deepspeed train.py \\-\\-deepspeed_config ds_config.json\n.fi\n";

const std::vector<std::string> kShells{"bash", "zsh", "fish"};

std::vector<ManualCommand> commands_of_host() {
  const OptionSet only_help = man_options();
  return {
      {"", "[options] [--] COMMAND...", "", Operand::command, tune_options(), {}},
      {"resume",
       "DIR [options]",
       "Continues an interrupted study, or a finished one with a raised limit",
       Operand::folder,
       resume_options(),
       {}},
      {"show", "DIR [options]", "Prints a study and its trials", Operand::folder, show_options(), {}},
      {"best",
       "DIR [options]",
       "Prints the best configuration, and writes its files again",
       Operand::folder,
       best_options(),
       {}},
      {"report", "DIR [-o FILE]", "Writes the page of a study", Operand::folder, report_options(), {}},
      {"serve",
       "DIR... [--port N]",
       "Shows studies in a browser of this machine, live",
       Operand::folder,
       serve_options(),
       {}},
      {"export",
       "DIR --format FORMAT [-o PATH]",
       "Writes a study in the format of another program",
       Operand::folder,
       export_options(),
       {}},
      {"check", "DIR [options]", "Examines the journal of a study", Operand::folder, check_options(), {}},
      {"plugins", "[--json]", "Lists searchers and profilers", Operand::none, plugins_options(), {}},
      {"validate", "FILE [options]", "Checks a plugin", Operand::file, validate_options(), {}},
      {"new-plugin",
       "NAME [--language LANGUAGE]",
       "Begins a searcher of your own",
       Operand::word,
       new_plugin_options(),
       {}},
      {"estimate",
       "[options]",
       "Estimates the memory of each ZeRO stage, without a trial",
       Operand::none,
       estimate_options(),
       {}},
      {"space",
       "[options] -- COMMAND...",
       "Prints what would be searched, and runs nothing",
       Operand::command,
       tune_options(),
       {}},
      {"completion", "SHELL", "Prints the completion of bash, zsh or fish", Operand::word, only_help, kShells},
      {"man", "", "Prints this page", Operand::none, only_help, {}},
  };
}

cli_kit::Manual manual_of_host() {
  return {"dsat-host", "finds the fastest DeepSpeed configuration of a training command", kDescription, kEnd,
          commands_of_host()};
}

}  // namespace

std::vector<std::string> words_of_manual() {
  std::vector<std::string> words;
  for (const ManualCommand& command : commands_of_host()) words.push_back(command.word);
  return words;
}

int man(const Tokens& arguments, Console& console) {
  const auto request = read_request(man_options(), arguments, kUsageOfMan, console);
  if (!request) return kBestFound;
  refuse_operands(request->operands, "man");
  console.print(cli_kit::man_page(manual_of_host()));
  return kBestFound;
}

int completion(const Tokens& arguments, Console& console) {
  const auto request = read_request(man_options(), arguments, kUsageOfCompletion, console);
  if (!request) return kBestFound;
  const std::string shell = request->operands.size() == 1 ? request->operands.front() : "";
  console.print(cli_kit::completion(manual_of_host(), shell));
  return kBestFound;
}

}  // namespace dsat::cli
