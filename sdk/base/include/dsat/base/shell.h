// Commands as a POSIX shell reads them back. All text for a shell is made here.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_SHELL_H_
#define DSAT_BASE_SHELL_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat {

// One word. Letters, digits and _@%+=:,./- stand as they are; everything else is quoted.
std::string shell_quote(std::string_view word);

// A command: its words quoted, one blank between them. A first word such as a=b stays a word and assigns nothing.
std::string shell_join(const std::vector<std::string>& argv);

// A name that a shell takes for a variable's: letters, digits and _, no digit first.
bool is_variable_name(std::string_view name);

// The command with "NAME=value" variables, run in a folder: cd FOLDER && NAME=value COMMAND. A variable whose name a
// shell does not allow is given through env(1), quoted.
std::string shell_command(std::string_view folder, const std::vector<std::string>& variables,
                          const std::vector<std::string>& argv);

}  // namespace dsat

#endif  // DSAT_BASE_SHELL_H_
