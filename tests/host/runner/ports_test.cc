// Ports for trials: each live one once, and none that somebody else listens on.
#include "runner/ports.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

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

TEST(PortPool, DoesNotReturnAtOnceToAReleasedPort) {
  PortPool pool;
  const uint16_t first = pool.acquire();
  pool.release(first);
  EXPECT_NE(pool.acquire(), first);
}

TEST(PortPool, SeesAListenerOfSomeoneElse) {
  PortPool pool;
  const uint16_t port = pool.acquire();
  ASSERT_TRUE(port_is_free(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_FALSE(port_is_free(port));
  close(fd);
  EXPECT_TRUE(port_is_free(port));
}

}  // namespace
}  // namespace dsat::host
