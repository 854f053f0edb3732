// The process's one DeviceMemory, behind functions that any room may call: a pointer that is set once and never freed.
// Also puts a refused allocation into a sentence for people.
#include "device/device_memory.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "dsat/base/units.h"

namespace dsat::trainer {
namespace {

// Never destroyed: tensors are freed until the process is gone.
DeviceMemory*& current() {
  static DeviceMemory* memory = nullptr;
  return memory;
}

std::string size_of(uint64_t bytes) { return format_size(static_cast<double>(bytes)); }

}  // namespace

void set_device_memory(std::unique_ptr<DeviceMemory> memory) {
  // An earlier one is kept as well: allocators may still count in it.
  static auto* const all = new std::vector<std::unique_ptr<DeviceMemory>>;
  current() = all->emplace_back(std::move(memory)).get();
}

uint64_t memory_in_use() { return current() == nullptr ? 0 : current()->in_use(); }
uint64_t memory_peak() { return current() == nullptr ? 0 : current()->peak(); }
uint64_t memory_load_peak() {
  static const uint64_t load_peak = [] {
    const uint64_t peak = memory_peak();
    if (current() != nullptr) current()->restart_peak();
    return peak;
  }();
  return load_peak;
}
void begin_memory_window() {
  if (current() != nullptr) current()->begin_window();
}
uint64_t memory_window_peak() { return current() == nullptr ? 0 : current()->window_peak(); }
void clear_out_of_memory() {
  if (current() != nullptr) current()->refusal().clear();
}
std::optional<OutOfMemory> out_of_memory() { return current() == nullptr ? std::nullopt : current()->refusal().get(); }

std::string describe(const OutOfMemory& failure) {
  const std::string limit =
      failure.budget == 0 ? ", and the machine has no more" : fmt::format(" of {}", size_of(failure.budget));
  return fmt::format("out of memory: tried to allocate {}; in use {}{}", size_of(failure.requested),
                     size_of(failure.in_use), limit);
}

}  // namespace dsat::trainer
