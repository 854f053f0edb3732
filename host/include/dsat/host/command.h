// The slots and the configuration of a training command, from its words.
//
// Threading: pure functions; config_of_command() looks for files. Errors: none; an unclear command gives an empty
// answer.
#ifndef DSAT_HOST_COMMAND_H_
#define DSAT_HOST_COMMAND_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dsat::host {

// The slots of one trial on all nodes, from the command's flags; nullopt: the flags do not fix them.
std::optional<int> slots_of_command(const std::vector<std::string>& command);

// The value of the command's configuration flag if it is a file below `cwd` or ends in .json; else empty.
std::string config_of_command(const std::vector<std::string>& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_H_
