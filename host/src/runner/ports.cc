// Goes through the range of ports, onwards from the last one that was given out.
#include "runner/ports.h"

#include <fmt/format.h>

#include "base/guarded.h"
#include "dsat/base/ports.h"

namespace dsat::host {

PortPool::PortPool() : next_(first_port_of_process()) {}

uint16_t PortPool::acquire() {
  for (int tried = 0; tried <= kLastPort - kFirstPort; ++tried) {
    // The search begins after the port given out last, because an ended trial's processes may still hold a released
    // port.
    const uint16_t port = next_;
    next_ = next_port(next_);
    if (live_.count(port) == 0 && port_is_free(port)) {
      live_.insert(port);
      return port;
    }
  }
  throw internal_error(
      fmt::format("no free TCP port between {} and {} for a trial's MASTER_PORT", kFirstPort, kLastPort));
}

void PortPool::release(uint16_t port) { live_.erase(port); }

}  // namespace dsat::host
