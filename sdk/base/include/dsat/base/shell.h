// Commands as a POSIX shell reads them back. Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_SHELL_H_
#define DSAT_BASE_SHELL_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat {

// One word. Letters, digits and _@%+=:,./- stand as they are; everything else is quoted.
std::string shell_quote(std::string_view word);

// A command: its words quoted, one blank between them.
std::string shell_join(const std::vector<std::string>& argv);

}  // namespace dsat

#endif  // DSAT_BASE_SHELL_H_
