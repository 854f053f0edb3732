// Keeps the first memory size that is given or reported. usable() subtracts the margin at each call.
#include "plan/device_memory.h"

namespace dsat::host {

DeviceMemory::DeviceMemory(const Plan& plan)
    : given_or_reported_(plan.device_memory_bytes),
      of_slots_(plan.slots.device_memory_bytes),
      margin_(plan.memory_margin) {}

void DeviceMemory::learn(std::optional<uint64_t> reported) {
  if (!given_or_reported_) given_or_reported_ = reported;
}

std::optional<uint64_t> DeviceMemory::usable() const {
  if (!all()) return std::nullopt;
  return static_cast<uint64_t>(static_cast<double>(*all()) * (1 - margin_));
}

}  // namespace dsat::host
