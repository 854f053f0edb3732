// Walks through a range of ports below the kernel's own.
// A port is free if this program can listen on it, on IPv4 and IPv6.
#include "runner/ports.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/guarded.h"

namespace dsat::host {

namespace {

// Below the kernel's default range for outgoing connections, which could take a port between probe and use.
constexpr uint16_t kFirst = 20000, kLast = 32767;

bool can_listen(int family, const sockaddr* address, socklen_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;  // no such address family here: no program can use it
  const int on = 1;
  // As the rendezvous servers do: a connection that lingers in TIME_WAIT is no obstacle, a listener is.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const bool free = bind(fd, address, size) == 0 && listen(fd, 1) == 0;
  close(fd);
  return free;
}

}  // namespace

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

// Hosts that share a machine begin at different places, since each sees the other's ports as free until they are bound.
PortPool::PortPool() : next_(static_cast<uint16_t>(kFirst + getpid() * 61 % (kLast - kFirst + 1))) {}

uint16_t PortPool::acquire() {
  for (int tried = 0; tried <= kLast - kFirst; ++tried) {
    // Onwards, not from the start: a port that was just released may still be held by what its trial left behind.
    const uint16_t port = next_;
    next_ = next_ == kLast ? kFirst : static_cast<uint16_t>(next_ + 1);
    if (live_.count(port) == 0 && port_is_free(port)) {
      live_.insert(port);
      return port;
    }
  }
  throw internal_error(fmt::format("no free TCP port between {} and {} for a trial's MASTER_PORT", kFirst, kLast));
}

void PortPool::release(uint16_t port) { live_.erase(port); }

}  // namespace dsat::host
