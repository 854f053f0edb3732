// Whole files: read with a bound, written so that a reader and a power cut find the old file or the new one.
//
// Only regular files are read: to read a pipe means to wait, and a device has no end. A file that a user names may be a
// pipe as well (try_read_input), because the user knows who writes to it. Threading: no state of its own; two threads
// may not write the same file at once. Errors: dsat::Error, one line that names file, action and cause, with code
// DSAT_INTERNAL. If a user named the file, the caller puts the problem in words for that user.
#ifndef DSAT_BASE_FILES_H_
#define DSAT_BASE_FILES_H_

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace dsat {

// No configuration, result or scenario that a person or a trial writes is as large. A larger file is not read.
inline constexpr size_t kMaxFileBytes = size_t{256} << 20;

// How long a pipe may be silent. Whatever writes a configuration is done by then.
inline constexpr std::chrono::milliseconds kPipePatience = std::chrono::minutes(1);

// Why a file cannot be read, or its bytes.
struct FileText {
  std::string bytes;
  std::string problem;  // empty: `bytes` is the whole file; else "it is a folder", "Permission denied", ...
  bool ok() const { return problem.empty(); }
};
FileText try_read_file(const std::filesystem::path& file, size_t max_bytes = kMaxFileBytes);

// A regular file, or a pipe such as a shell's <(COMMAND), which is read to its end and is empty afterwards. A pipe that
// is silent for `patience` is a problem; the time before its first writer counts too.
FileText try_read_input(const std::filesystem::path& file, std::chrono::milliseconds patience = kPipePatience,
                        size_t max_bytes = kMaxFileBytes);

// Throws Error "cannot read FILE: PROBLEM".
std::string read_file(const std::filesystem::path& file, size_t max_bytes = kMaxFileBytes);

// The last `max_bytes` of a regular file; empty: it cannot be read.
std::string read_tail(const std::filesystem::path& file, size_t max_bytes);

// synced: on disk when the call returns. renamed: every reader finds the whole file or none, but the machine may stop
// before it is on disk. It takes a tenth of the time and is for files that can be made again.
enum class Durability { synced, renamed };

// Who may open a new file: everybody whom the umask allows, or its owner alone (arguments and environments may hold
// secrets).
enum class Access { by_umask, owner };

// Writes a temporary file beside `file`, renames it over `file`, and syncs both as asked. If it throws Error, the old
// file is untouched and nothing is left behind.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes,
                           Durability durability = Durability::synced, Access access = Access::by_umask);

// Writes to disk which names were created, renamed or removed in a folder. Does nothing on a file system that cannot
// sync a folder. Throws Error.
void sync_folder(const std::filesystem::path& folder);

// A file that one writer writes; earlier content is gone. The destructor closes it. Throws Error.
class NewFile {
 public:
  // `shown`: how errors name it; empty: as `path`.
  explicit NewFile(const std::filesystem::path& path, std::string shown = {}, Access access = Access::by_umask);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes);
  void sync();   // returns when the disk has it
  void close();  // throws for a late write error; the destructor cannot

 private:
  std::string shown_;
  int fd_;
};

}  // namespace dsat

#endif  // DSAT_BASE_FILES_H_
