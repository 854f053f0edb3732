// Files as a whole. Reads have a bound. After a write, a reader and a power cut find the old file or the new one.
//
// Only regular files are read, because a pipe may block and a device has no end. A file that a user names may be a pipe
// too (try_read_input). Threading: no state; two threads may not write the same file at once. Errors: dsat::Error, one
// line that names file, action and cause, with code DSAT_INTERNAL.
#ifndef DSAT_BASE_FILES_H_
#define DSAT_BASE_FILES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace dsat {

// Larger files are not read. No configuration, result or scenario comes near this size.
inline constexpr size_t kMaxFileBytes = size_t{256} << 20;

// The longest silence of a pipe.
inline constexpr std::chrono::milliseconds kPipePatience = std::chrono::minutes(1);

// The bytes of a file, or the reason why it cannot be read.
struct FileText {
  std::string bytes;
  std::string problem;  // empty: `bytes` is the whole file; else "it is a folder", "Permission denied", ...
  bool ok() const { return problem.empty(); }
};
FileText try_read_file(const std::filesystem::path& file, size_t max_bytes = kMaxFileBytes);

// Reads a regular file, or a pipe such as a shell's <(COMMAND) to its end. A pipe that is silent for `patience`, even
// before its first writer, is a problem.
FileText try_read_input(const std::filesystem::path& file, std::chrono::milliseconds patience = kPipePatience,
                        size_t max_bytes = kMaxFileBytes);

// Throws Error "cannot read FILE: PROBLEM".
std::string read_file(const std::filesystem::path& file, size_t max_bytes = kMaxFileBytes);

// The last `max_bytes` of a regular file; empty if it cannot be read.
std::string read_tail(const std::filesystem::path& file, size_t max_bytes);

// The bytes that this user may still write on the file system of a folder; nullopt: unknown.
std::optional<uint64_t> free_bytes(const std::filesystem::path& folder);

// synced: the file is on disk when the call returns. renamed: every reader finds the whole file or none, but a crash of
// the machine may lose it. This takes a tenth of the time and is for files that can be made again.
enum class Durability { synced, renamed };

// The readers of a new file: everybody whom the umask allows, or the owner alone, for files that may hold secrets.
enum class Access { by_umask, owner };

// Writes a temporary file beside `file` and renames it over `file`. If it throws Error, the old file is untouched and
// the temporary file is gone.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes,
                           Durability durability = Durability::synced, Access access = Access::by_umask);

// Syncs the names in a folder to disk, after files were created, renamed or removed. Does nothing on a file system
// without that operation. Throws Error.
void sync_folder(const std::filesystem::path& folder);

// Writes to a pipe or device that is there, such as /dev/stdout. Throws Error.
void write_into(const std::filesystem::path& target, std::string_view bytes);

// A file for one writer. What had this name is removed first, so nothing is written through a link. The destructor
// closes the file. Throws Error.
class NewFile {
 public:
  // `shown`: the file's name in errors; empty: `path`.
  explicit NewFile(const std::filesystem::path& path, std::string shown = {}, Access access = Access::by_umask);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes);
  void sync();   // returns when the file is on disk
  void close();  // throws if a late write fails; the destructor cannot

 private:
  std::string shown_;
  int fd_;
};

}  // namespace dsat

#endif  // DSAT_BASE_FILES_H_
