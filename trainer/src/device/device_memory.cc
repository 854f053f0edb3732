#include "device/device_memory.h"

#include <utility>

#include "dsat/base/units.h"

namespace dsat::trainer {
namespace {

// Never destroyed: tensors are freed until the process is gone.
DeviceMemory*& current() {
  static DeviceMemory* memory = nullptr;
  return memory;
}

}  // namespace

void use_memory(std::unique_ptr<DeviceMemory> memory) { current() = memory.release(); }

uint64_t memory_in_use() { return current() == nullptr ? 0 : current()->in_use(); }
uint64_t memory_peak() { return current() == nullptr ? 0 : current()->peak(); }
void begin_memory_window() {
  if (current() != nullptr) current()->begin_window();
}
uint64_t memory_window_peak() { return current() == nullptr ? 0 : current()->window_peak(); }
void forget_out_of_memory() {
  if (current() != nullptr) current()->forget_refusal();
}
std::optional<OutOfMemory> out_of_memory() { return current() == nullptr ? std::nullopt : current()->refused(); }

std::string describe(const OutOfMemory& failure) {
  std::string text = "out of memory: tried to allocate " + format_size(static_cast<double>(failure.requested)) +
                     "; in use " + format_size(static_cast<double>(failure.in_use));
  return failure.budget == 0 ? text + ", and the machine has no more"
                             : text + " of " + format_size(static_cast<double>(failure.budget));
}

}  // namespace dsat::trainer
