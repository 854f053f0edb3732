// What a training command reveals before it is run: how many slots it takes and which configuration it names.
//
// Threading: pure functions; config_of_command() looks at files. Errors: none; for an unclear command the answer is
// empty.
#ifndef DSAT_HOST_COMMAND_H_
#define DSAT_HOST_COMMAND_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dsat::host {

// The slots of one trial by the command's own flags, all nodes counted; nullopt: they leave it open.
std::optional<int> slots_of_command(const std::vector<std::string>& command);

// The value of the command's configuration flag that is a file below `cwd` or ends in .json; empty: there is none.
std::string config_of_command(const std::vector<std::string>& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_H_
