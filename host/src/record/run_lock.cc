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

std::string holder_named_in(const std::filesystem::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  return text;
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

RunLock RunLock::take(const std::filesystem::path& dir) {
  const auto end = steady_clock::now() + kUntilAChildBegins;
  for (;;) {
    if (auto lock = take_if_free(dir)) return std::move(*lock);
    const std::string holder = holder_named_in(dir / "dsat.lock");
    if (!has_died(holder) || steady_clock::now() > end) {
      throw Error(fmt::format("{}: its study is live ({}); stop that dsat-host first", dir.string(), holder));
    }
    poll(nullptr, 0, 10);  // waiting for the lock itself would never end if the child hangs
  }
}

std::optional<RunLock> RunLock::take_if_free(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / "dsat.lock";
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw Error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  RunLock lock(file, fd);
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
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
  if (fstat(fd, &held) != 0 || stat(file.c_str(), &named) != 0 || held.st_ino != named.st_ino) {
    lock.file_.clear();
    return take_if_free(dir);
  }
  const std::string text = holder_text(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw Error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  }
  return lock;
}

bool RunLock::is_held(const std::filesystem::path& dir) {
  const int fd = open((dir / "dsat.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  const bool held = fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  close(fd);
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
