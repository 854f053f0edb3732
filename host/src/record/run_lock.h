// Only one host at a time works on a run directory: it locks DIR/dsat.lock, which names it.
//
// The kernel removes the lock when the process ends in any way; a lock file without a lock means nothing. Whoever holds
// the lock writes in the folder and runs what its journal names, so the folder of another user is refused unless it is
// asked for. Threading: control thread. Ownership: the object holds the lock. Errors: dsat::Error.
#ifndef DSAT_HOST_RECORD_RUN_LOCK_H_
#define DSAT_HOST_RECORD_RUN_LOCK_H_

#include <filesystem>
#include <optional>
#include <utility>

namespace dsat::host {

// The run directories that are used: one's own, or also those that another user made or can write to
// (--trust-folder).
enum class Trust { own, others };

// Throws if another user controls the folder (dsat/base/owner.h) and only one's own are used.
void refuse_folder_of_others(const std::filesystem::path& dir, Trust trust);

class RunLock {
 public:
  // Throws with host, pid and boot if another process holds it. If that process has died, first waits up to ten
  // seconds, because a child that it was starting may have the lock until its program begins.
  static RunLock take(const std::filesystem::path& dir, Trust trust = Trust::own);
  // nullopt: another process holds it. Throws if the folder cannot be locked.
  static std::optional<RunLock> take_if_free(const std::filesystem::path& dir, Trust trust = Trust::own);
  RunLock(RunLock&& other) noexcept : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)) {}
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();  // removes the file and drops the lock

  // Whether a host holds the lock now. Changes nothing, and needs no write permission. A lock that this user may not
  // read counts as held.
  static bool is_held(const std::filesystem::path& dir);

 private:
  RunLock(std::filesystem::path file, int fd) : file_(std::move(file)), fd_(fd) {}
  std::filesystem::path file_;
  int fd_ = -1;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_RUN_LOCK_H_
