// dsat-plugin-host HOST_PID MEMORY_BYTES: the process of its own that a plugin runs in. Descriptor 3 is its connection
// to the host, and it ends when that ends; it dies with the host's thread that has started it, whatever the plugin
// does.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "plugin/plugin_server.h"
#include "validate/checks.h"

namespace {

constexpr int kConnection = 3;
constexpr int kUsage = 2;

// Data alone: address space that is only reserved costs nothing. A sanitizer's shadow memory counts as data.
void limit_memory(rlim_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{bytes, bytes};
  if (bytes > 0) setrlimit(RLIMIT_DATA, &limit);
#else
  (void)bytes;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "dsat-plugin-host is started by dsat-host, with a connection to it\n");
    return kUsage;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::atoi(argv[1])) return kUsage;
  if (fcntl(kConnection, F_SETFD, FD_CLOEXEC) != 0) return kUsage;
  limit_memory(std::strtoull(argv[2], nullptr, 10));
  dsat::host::PluginServer(kConnection, dsat::host::run_check).run();
  return 0;
}
