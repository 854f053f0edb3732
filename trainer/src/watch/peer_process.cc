// Names this process by boot, process namespace and number, and opens a peer of the same host as a pidfd.
// Number and program are both compared, because a number may belong to another process by then. A peer that has ended
// before it is looked at is known to have: its number is free, or its program can no longer be read.
#include "watch/peer_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <fstream>
#include <sstream>
#include <utility>

namespace dsat::trainer {
namespace {

std::string target_of(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  return {target, size > 0 ? static_cast<size_t>(size) : 0};
}

// Numbers of processes mean the same wherever this is the same; empty: it cannot be known.
std::string own_host() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  const std::string numbers = target_of("/proc/self/ns/pid");
  return in >> boot && !numbers.empty() ? boot + "/" + numbers : "";
}

std::string program_of(const std::string& process) { return target_of(fmt::format("/proc/{}/exe", process)); }

}  // namespace

std::string PeerProcess::own_name() { return fmt::format("{} {}", own_host(), ::getpid()); }

PeerProcess::PeerProcess(const std::string& name) {
  std::istringstream in(name);
  std::string host;
  pid_t pid = 0;
  if (!(in >> host >> pid) || host != own_host() || pid <= 1 || pid == ::getpid()) return;
  fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  is_gone_ = fd_ < 0 && errno == ESRCH;
  if (fd_ < 0) return;
  const std::string program = program_of(std::to_string(pid));
  if (program.empty() || program == program_of("self")) return;
  ::close(fd_);
  fd_ = -1;
}

PeerProcess::~PeerProcess() {
  if (fd_ >= 0) ::close(fd_);
}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept : fd_(std::exchange(other.fd_, -1)), is_gone_(other.is_gone_) {}

PeerProcess& PeerProcess::operator=(PeerProcess&& other) noexcept {
  std::swap(fd_, other.fd_);
  is_gone_ = other.is_gone_;
  return *this;
}

bool PeerProcess::has_ended() const {
  pollfd end{fd_, POLLIN, 0};
  return is_gone_ || (fd_ >= 0 && ::poll(&end, 1, 0) > 0);
}

void PeerProcess::kill() const {
  if (fd_ >= 0) ::syscall(SYS_pidfd_send_signal, fd_, SIGKILL, nullptr, 0);
}

}  // namespace dsat::trainer
