// Text for a POSIX shell.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_SHELL_H_
#define DSAT_BASE_SHELL_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat {

// A word. Letters, digits and _@%+=:,./- need no quotes; any other word is quoted.
std::string shell_quote(std::string_view word);

// A command: its quoted words with blanks between them. A first word such as a=b assigns no variable.
std::string shell_join(const std::vector<std::string>& argv);

// Is this a legal name of a shell variable: letters, digits and _, no digit first?
bool is_variable_name(std::string_view name);

// A command with "NAME=value" variables in a folder: cd FOLDER && NAME=value COMMAND. env(1) sets a variable whose name
// a shell does not allow.
std::string shell_command(std::string_view folder, const std::vector<std::string>& variables,
                          const std::vector<std::string>& argv);

}  // namespace dsat

#endif  // DSAT_BASE_SHELL_H_
