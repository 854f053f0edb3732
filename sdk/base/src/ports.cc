// A port is free if this program can listen on it, on IPv4 and IPv6.
#include "dsat/base/ports.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "dsat/error.h"

namespace dsat {
namespace {

constexpr int kPorts = kLastPort - kFirstPort + 1;

bool can_listen(int family, const sockaddr* address, socklen_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;  // the machine lacks this address family, so no program can use it
  const int on = 1;
  // The rendezvous servers set the same option: a connection in TIME_WAIT is no obstacle, a listener is.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const bool free = bind(fd, address, size) == 0 && listen(fd, 1) == 0;
  close(fd);
  return free;
}

}  // namespace

uint16_t first_port_of_process() {
  struct stat info {};
  // Containers that share a network count their processes from 1.
  const uint64_t container = stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
  return static_cast<uint16_t>(kFirstPort + (static_cast<uint64_t>(getpid()) * 61 + container * 7919) % kPorts);
}

bool port_is_free(uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_ANY);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_any;
  return can_listen(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4) &&
         can_listen(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
}

uint16_t free_port() {
  static std::atomic<unsigned> given{0};
  for (int tried = 0; tried < kPorts; ++tried) {
    const unsigned place = first_port_of_process() - kFirstPort + given.fetch_add(1);
    const auto port = static_cast<uint16_t>(kFirstPort + place % kPorts);
    if (port_is_free(port)) return port;
  }
  throw Error(DSAT_INTERNAL, fmt::format("no free TCP port between {} and {}", kFirstPort, kLastPort));
}

}  // namespace dsat
