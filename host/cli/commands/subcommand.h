// What the sub-commands share in reading their arguments.
//
// Threading: plain functions of the main thread. Errors: dsat::Error that says what to type.
#ifndef DSAT_CLI_COMMANDS_SUBCOMMAND_H_
#define DSAT_CLI_COMMANDS_SUBCOMMAND_H_

#include <filesystem>
#include <string>

#include "options/kit.h"
#include "terminal/console.h"

namespace dsat::cli {

// As wide as the terminal, within reason.
void print_version(Console& console);
void print_help(const std::string& usage, const OptionSet& set, Console& console);

// A sub-command's arguments, read.
struct SubCommandArguments {
  Values values;
  Tokens operands;
};

// nullopt: --help was asked for and is printed below `usage`.
std::optional<SubCommandArguments> read_request(const OptionSet& set, const Tokens& arguments, const std::string& usage,
                                                Console& console);

// The one run directory that `resume` and `show` want; where DeepSpeed's results are named, the study in them.
std::filesystem::path only_directory(const Tokens& operands, const std::string& sub_command);

void refuse_operands(const Tokens& operands, const std::string& sub_command);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_SUBCOMMAND_H_
