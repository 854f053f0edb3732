// The owner of a file, a folder or a link. On a shared machine nothing of another user is used unasked.
//
// Trusted are the user of this process and root, who can change every file anyway. Threading: pure except for reading
// the file system. Errors: in the results; a path that is not there is nobody's.
#ifndef DSAT_BASE_OWNER_H_
#define DSAT_BASE_OWNER_H_

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace dsat {

bool is_trusted(uid_t owner);

// Returns the first symbolic link on the way to `path` that another user made; nullopt: none.
std::optional<std::filesystem::path> link_of_others(const std::filesystem::path& path);

// Returns "" or why another user decides what the folder holds: a link to it or the folder is another user's, or
// everybody can write to it.
std::string why_others_control(const std::filesystem::path& folder);

// Returns "" or why the file is another user's: a link, or a file that belongs neither to a trusted user nor to the
// owner of its folder.
std::string why_others_made(const std::filesystem::path& file);

// A file that was opened, or the reason why it was not.
struct OpenedFile {
  int fd = -1;          // the caller closes it
  std::string problem;  // empty: opened
  int error = 0;        // errno; 0: the file is not one's own
};

// Opens or, with O_CREAT, makes a regular file that others did not make, and that has no other name. It follows no link
// in the last part of the path and never waits, for example for a pipe's writer. `flags` as open(2), without O_TRUNC.
OpenedFile open_own_file(const std::filesystem::path& file, int flags, mode_t mode = 0600);

}  // namespace dsat

#endif  // DSAT_BASE_OWNER_H_
