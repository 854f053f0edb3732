#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace dsat::host {

namespace {

Status failed(const std::filesystem::path& file, const char* action, int error) {
  return Status::internal("cannot " + std::string(action) + " " + file.string() + ": " + std::strerror(error));
}

// The number of the call that failed, or 0.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Makes the rename last. File systems that cannot sync a folder say EINVAL: theirs is the best there is.
int sync_folder(const std::filesystem::path& folder) {
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

Status write_file_atomically(const std::filesystem::path& file, std::string_view bytes, Durability durability) {
  const std::filesystem::path temporary =
      file.parent_path() / ("." + file.filename().string() + "." + std::to_string(getpid()) + ".tmp");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return failed(file, "write", errno);
  int error = write_all(fd, bytes);
  if (error == 0 && durability == Durability::synced && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), file.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    return failed(file, "write", error);
  }
  if (durability == Durability::renamed) return {};
  error = sync_folder(file.parent_path());
  return error == 0 ? Status() : failed(file, "sync the folder of", error);
}

}  // namespace dsat::host
