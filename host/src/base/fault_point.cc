// Uses SIGKILL, so that neither handlers nor destructors run.
#include "base/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace dsat::host {
namespace {

struct Fault {
  std::string name;
  long left = 1;
};

Fault fault_from_environment() {
  const char* text = std::getenv("DSAT_FAULT");
  if (text == nullptr) return {};
  Fault fault{text};
  if (const size_t colon = fault.name.find(':'); colon != std::string::npos) {
    fault.left = std::strtol(fault.name.c_str() + colon + 1, nullptr, 10);
    fault.name.resize(colon);
  }
  return fault;
}

}  // namespace

void fault_point(const char* name) {
  static Fault fault = fault_from_environment();
  if (fault.name.empty() || fault.name != name || --fault.left > 0) return;
  kill(getpid(), SIGKILL);
  pause();
}

}  // namespace dsat::host
