// The manual page of a program and its completion in shells, from its options.
//
// Threading: pure functions. Errors: dsat::Error that says what to type.
#ifndef DSAT_CLI_MANUAL_H_
#define DSAT_CLI_MANUAL_H_

#include <string>
#include <vector>

#include "dsat/cli/option_set.h"

namespace dsat::cli_kit {

enum class Operand { none, folder, file, command, word };

struct ManualCommand {
  std::string word;      // the sub-command; empty: the program itself
  std::string synopsis;  // after the words of the command: "DIR [options]"
  std::string summary;   // one line, without a full stop
  Operand operand = Operand::none;
  OptionSet options;
  std::vector<std::string> words;  // the operand's values, if it has names
};

struct Manual {
  std::string program, summary;
  std::string description;              // paragraphs, with an empty line between them
  std::string end;                      // more sections, as roff
  std::vector<ManualCommand> commands;  // the first one is the program itself
};

std::string man_page(const Manual& manual);

// What the shell bash, zsh or fish reads. Throws Error for another one.
std::string completion(const Manual& manual, const std::string& shell);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_MANUAL_H_
