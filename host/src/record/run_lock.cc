// Uses an open-file-description lock; the file's text is only for people.
#include "record/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "dsat/base/files.h"
#include "dsat/base/owner.h"
#include "dsat/error.h"

namespace dsat::host {
namespace {

using std::chrono::steady_clock;

std::string holder_text(pid_t pid) {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  return fmt::format("host {}, pid {}, boot {}", host, pid, boot_id);
}

constexpr const char* kLockFile = "dsat.lock";

struct flock whole_file(short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

std::string holder_named_in(const std::filesystem::path& file) {
  constexpr size_t kMostBytes = 1024;
  const std::string text = try_read_file(file, kMostBytes).bytes;
  return text.substr(0, text.find('\n'));
}

// The process that holds another kind of lock than ours; 0: none. The kernel names no process for a lock
// such as ours.
pid_t other_locker_of(const std::filesystem::path& file) {
  const OpenedFile opened = open_own_file(file, O_RDWR);
  if (opened.fd < 0) return 0;
  struct flock range = whole_file(F_WRLCK);
  const bool is_locked = fcntl(opened.fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  close(opened.fd);
  return is_locked && range.l_pid > 0 ? range.l_pid : 0;
}

bool has_died(const std::string& holder) {
  constexpr const char kPid[] = ", pid ";
  const size_t at = holder.find(kPid);
  const pid_t pid = at == std::string::npos ? 0 : std::atoi(holder.c_str() + at + std::strlen(kPid));
  return pid > 0 && holder == holder_text(pid) && kill(pid, 0) != 0 && errno == ESRCH;
}

// If a holder is killed while it starts a program, the child has the lock until that program begins.
constexpr std::chrono::seconds kUntilAChildBegins{10};

}  // namespace

void refuse_folder_of_others(const std::filesystem::path& dir, Trust trust) {
  if (trust == Trust::others) return;
  const std::string why = why_others_control(dir);
  if (why.empty()) return;
  throw Error(
      fmt::format("{}: {}: give another folder, or --trust-folder if you trust what is in it", dir.string(), why));
}

RunLock RunLock::take(const std::filesystem::path& dir, Trust trust) {
  const auto end = steady_clock::now() + kUntilAChildBegins;
  for (;;) {
    if (auto lock = take_if_free(dir, trust)) return std::move(*lock);
    if (const pid_t other = other_locker_of(dir / kLockFile); other > 0) {
      throw Error(
          fmt::format("{}: process {} holds its lock and is no dsat-host: end that process", dir.string(), other));
    }
    const std::string holder = holder_named_in(dir / kLockFile);
    if (!has_died(holder)) {
      throw Error(fmt::format("{}: its study is live ({}); stop that dsat-host first", dir.string(), holder));
    }
    if (steady_clock::now() > end) {
      throw Error(
          fmt::format("{}: a process that its dead host left behind holds its lock: end that process (fuser {} "
                      "names it)",
                      dir.string(), (dir / kLockFile).string()));
    }
    poll(nullptr, 0, 10);  // waiting for the lock itself would never end if the child hangs
  }
}

std::optional<RunLock> RunLock::take_if_free(const std::filesystem::path& dir, Trust trust) {
  refuse_folder_of_others(dir, trust);
  const std::filesystem::path file = dir / kLockFile;
  const OpenedFile opened = open_own_file(file, O_RDWR | O_CREAT);
  const int fd = opened.fd;
  if (fd < 0) {
    const char* remedy = opened.error == 0 || opened.error == ELOOP ? "; remove it" : "";
    throw Error(fmt::format("{}: {}{}", file.string(), opened.problem, remedy));
  }
  RunLock lock(file, fd);
  struct flock range = whole_file(F_WRLCK);
  if (fcntl(fd, F_OFD_SETLK, &range) != 0) {
    const int cause = errno;
    // Some file systems of clusters have no locks, or only if mounted with an option.
    if (cause != EAGAIN && cause != EACCES) {
      throw Error(fmt::format("{}: it cannot be locked ({}); give an --output-dir on a file system that has locks",
                              file.string(), std::strerror(cause)));
    }
    lock.file_.clear();  // the file belongs to the holder
    return std::nullopt;
  }
  // The last holder may have removed the file between our open and our lock. Then this lock protects nothing.
  struct stat held {
  }, named{};
  if (fstat(fd, &held) != 0 || lstat(file.c_str(), &named) != 0 || held.st_ino != named.st_ino) {
    lock.file_.clear();
    return take_if_free(dir, trust);
  }
  // Whoever may read the file could lock it. Earlier versions let everybody read it.
  const std::string text = holder_text(getpid());
  if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 || ftruncate(fd, 0) != 0 ||
      pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw Error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  }
  return lock;
}

bool RunLock::is_held(const std::filesystem::path& dir) {
  const OpenedFile opened = open_own_file(dir / kLockFile, O_RDONLY);
  if (opened.fd < 0) return opened.error == EACCES;
  struct flock range = whole_file(F_WRLCK);
  const bool held = fcntl(opened.fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  close(opened.fd);
  return held;
}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(fd_, other.fd_);
  return *this;
}

RunLock::~RunLock() {
  if (fd_ < 0) return;
  if (!file_.empty()) unlink(file_.c_str());
  close(fd_);
}

}  // namespace dsat::host
