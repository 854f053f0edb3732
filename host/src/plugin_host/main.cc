// dsat-plugin-host HOST_PID MEMORY_BYTES FILE: the process in which the plugin FILE runs. Descriptor 3 is its
// connection to the host. It ends when the connection ends, and is killed when the host's thread that started it ends.
// For a plugin in Python it becomes Python's interpreter, which answers the same messages (sdk/python/dsat/_serve.py).
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "dsat/host/plugins.h"
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

// Returns only if there is no interpreter. The package that came with this program goes before another installed one:
// the two have to agree. A fixed seed of hashes keeps the order of a set, on which a search may depend.
int become_python(const char* file) {
  std::array<char, PATH_MAX> program{};
  if (readlink("/proc/self/exe", program.data(), program.size() - 1) < 0) return kUsage;
  const std::filesystem::path folder = std::filesystem::path(program.data()).parent_path();
  std::error_code error;
  const std::filesystem::path beside = folder / "python";
  const std::string package =
      (std::filesystem::exists(beside, error) ? beside : (folder / DSAT_PYTHON_DIR_FROM_LIBEXEC).lexically_normal());
  const char* users = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (users == nullptr || *users == 0 ? package : package + ":" + users).c_str(), 1);
  setenv("PYTHONHASHSEED", "0", 1);
  const char* chosen = std::getenv("DSAT_PYTHON");
  const char* python = chosen != nullptr && *chosen != 0 ? chosen : "python3";
  execlp(python, python, "-m", "dsat._serve", file, nullptr);
  std::fprintf(stderr, "%s cannot be run: %s; install Python, or name it by DSAT_PYTHON\n", python,
               std::strerror(errno));
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "dsat-plugin-host is started by dsat-host, with a connection to it\n");
    return kUsage;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::atoi(argv[1])) return kUsage;
  limit_memory(std::strtoull(argv[2], nullptr, 10));
  if (dsat::host::is_python_plugin(argv[3])) return become_python(argv[3]);
  if (fcntl(kConnection, F_SETFD, FD_CLOEXEC) != 0) return kUsage;
  dsat::host::PluginServer(kConnection, dsat::host::run_check).run();
  return 0;
}
