// Checks files whose code this process runs: only their owner and the owner's group may be able to change them.
// Threading: pure except for reading file modes. Errors: none; opening a file that cannot be checked fails later.
#ifndef DSAT_HOST_BASE_WORLD_WRITABLE_H_
#define DSAT_HOST_BASE_WORLD_WRITABLE_H_

#include <filesystem>
#include <string>

namespace dsat::host {

// Returns "" or why everybody on this machine could replace the file by other code, and what to do about it. A folder
// such as /tmp, in which nobody can remove another user's file, is safe for one's own file.
std::string why_world_writable(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_WORLD_WRITABLE_H_
