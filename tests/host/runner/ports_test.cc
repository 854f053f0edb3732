// Ports for trials: each live one once, and none that somebody else listens on.
#include "runner/ports.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "dsat/base/ports.h"

namespace dsat::host {
namespace {

TEST(PortPool, NeverHandsOutAPortTwiceWhileItIsLive) {
  PortPool pool;
  std::set<uint16_t> ports;
  for (int i = 0; i < 200; ++i) {
    const uint16_t port = pool.acquire();
    EXPECT_TRUE(ports.insert(port).second) << port;
    EXPECT_GE(port, 1024);
  }
}

TEST(PortPool, PassesOverALivePortWhenTheRangeBeginsAnew) {
  PortPool pool;
  const uint16_t live = pool.acquire();
  const uint16_t second = pool.acquire();
  pool.release(second);
  for (uint16_t port = 0; port != second; pool.release(port)) {  // nobody listens on the live one yet
    port = pool.acquire();
    ASSERT_NE(port, live);
  }
}

TEST(PortPool, DoesNotReturnAtOnceToAReleasedPort) {
  PortPool pool;
  const uint16_t first = pool.acquire();
  pool.release(first);
  EXPECT_NE(pool.acquire(), first);
}

// -1 where somebody has the port. A connection of another program that lingers there is no obstacle.
int listen_on(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0) return fd;
  close(fd);
  return -1;
}

TEST(PortPool, SeesAListenerOfSomeoneElse) {
  PortPool pool;
  const uint16_t port = pool.acquire();
  ASSERT_TRUE(port_is_free(port));
  const int fd = listen_on(port);
  ASSERT_GE(fd, 0);
  EXPECT_FALSE(port_is_free(port));
  close(fd);
  EXPECT_TRUE(port_is_free(port));
}

TEST(PortPool, PassesOverAPortThatSomeoneElseHas) {
  PortPool pool;
  const uint16_t port = pool.acquire();
  // Whoever has the ports that come next, this test or another program, they are not to be had.
  std::vector<int> listeners;
  for (uint16_t next = port + 1; next <= port + 3; ++next) listeners.push_back(listen_on(next));
  const uint16_t acquired = pool.acquire();
  EXPECT_TRUE(acquired < port || acquired > port + 3) << acquired;
  for (const int fd : listeners) close(fd);
}

// A connection that some program makes may take any port of the kernel's range.
TEST(FreePort, IsNoneThatAConnectionCouldTakeAndComesOnce) {
  std::set<uint16_t> ports;
  for (int i = 0; i < 50; ++i) {
    const uint16_t port = free_port();
    EXPECT_GE(port, kFirstPort);
    EXPECT_LE(port, kLastPort);
    EXPECT_TRUE(ports.insert(port).second) << port;
  }
}

}  // namespace
}  // namespace dsat::host
