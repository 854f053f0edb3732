// Functions that the sub-commands share: version, help, arguments.
//
// Threading: plain functions of the main thread. Errors: dsat::Error that says what to type.
#ifndef DSAT_CLI_COMMANDS_SUBCOMMAND_H_
#define DSAT_CLI_COMMANDS_SUBCOMMAND_H_

#include <filesystem>
#include <string>

#include "options/kit.h"
#include "terminal/console.h"

namespace dsat::cli {

void print_version(Console& console);
// The help is as wide as the terminal, 80 to 100 columns.
void print_help(const std::string& usage, const OptionSet& set, Console& console);

struct SubCommandArguments {
  Values values;
  Tokens operands;
};

// Reads the arguments of a sub-command. nullopt: they have --help, and the help is printed below `usage`.
std::optional<SubCommandArguments> read_request(const OptionSet& set, const Tokens& arguments, const std::string& usage,
                                                Console& console);

// The one run directory among the operands. A folder of DeepSpeed's results stands for the study in it.
std::filesystem::path only_directory(const Tokens& operands, const std::string& sub_command);

void refuse_operands(const Tokens& operands, const std::string& sub_command);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_SUBCOMMAND_H_
