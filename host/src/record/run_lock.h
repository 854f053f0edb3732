// One host at a time works on a run directory: an open-file-description lock on DIR/dsat.lock, which names its holder.
//
// The kernel drops it when the process ends, however it ends; a lock file without a lock means nothing.
// Threading: control thread. Ownership: the object's life is the lock's. Errors: dsat::Error.
#ifndef DSAT_HOST_RECORD_RUN_LOCK_H_
#define DSAT_HOST_RECORD_RUN_LOCK_H_

#include <filesystem>
#include <optional>
#include <utility>

namespace dsat::host {

class RunLock {
 public:
  // Throws, naming host, pid and boot, when another process holds it. Where that process has died, waits up to ten
  // seconds first: a child that it was just starting may have the lock until its program begins.
  static RunLock take(const std::filesystem::path& dir);
  // nullopt: another process holds it. Throws where it cannot be locked.
  static std::optional<RunLock> take_if_free(const std::filesystem::path& dir);
  RunLock(RunLock&& other) noexcept : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)) {}
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();  // removes the file and drops the lock

  // Does a host hold it now? Changes nothing, and needs no right to write.
  static bool is_held(const std::filesystem::path& dir);

 private:
  RunLock(std::filesystem::path file, int fd) : file_(std::move(file)), fd_(fd) {}
  std::filesystem::path file_;
  int fd_ = -1;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_RUN_LOCK_H_
