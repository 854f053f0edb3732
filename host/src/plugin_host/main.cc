// dsat-plugin-host HOST_PID MEMORY_BYTES: the process in which a plugin runs. Descriptor 3 is its connection to the
// host. It ends when the connection ends, and is killed when the host's thread that started it ends.
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

// Limits only data, because reserved address space costs nothing. A sanitizer's shadow memory counts as data.
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
