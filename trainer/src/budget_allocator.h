// The memory of the device that a rank pretends to have.
//
// Counts every byte that LibTorch allocates for tensors on this process's CPU and refuses what goes over the budget, as
// a GPU does. Memory that Gloo or oneDNN take with malloc is not a device's and is not counted.
// Threading: counters are atomic; LibTorch may allocate from any thread.
#ifndef DSAT_TRAINER_BUDGET_ALLOCATOR_H_
#define DSAT_TRAINER_BUDGET_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <string>

namespace dsat::trainer {

struct OutOfMemory {
  uint64_t requested = 0;  // bytes
  uint64_t in_use = 0;
  uint64_t budget = 0;  // 0: the machine itself had no more
};

// Installs the allocator for the whole process, for good: call it once, before the first tensor. nullopt: counts only.
void install_budget(std::optional<uint64_t> budget_bytes);

uint64_t memory_in_use();  // bytes
uint64_t memory_peak();    // bytes, the highest memory_in_use() so far
// The highest since the last begin_memory_window(), for a look at a part of a step.
void begin_memory_window();
uint64_t memory_window_peak();  // bytes

// The first allocation that was refused. LibTorch may pass the failure on as any kind of exception, so the reason is
// asked here, not read from the exception.
std::optional<OutOfMemory> out_of_memory();

// "out of memory: tried to allocate 12.0 MB; in use 90.1 MB of 100 MB"
std::string describe(const OutOfMemory& failure);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_BUDGET_ALLOCATOR_H_
