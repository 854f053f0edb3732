// The memory of the device that a rank on the CPU pretends to have.
//
// Counts every byte that LibTorch allocates for tensors on this process's CPU and refuses what goes over the budget, as
// a GPU does. What Gloo takes with malloc is not a device's and is not counted. What oneDNN's kernels take through
// LibTorch is counted, and which kernels run depends on the processor: with AVX-512 LibTorch gives oneDNN the products
// in bf16 of more than 16^3 multiplications, so the same trial needs some kilobytes more there than elsewhere.
// Threading: counters are atomic; LibTorch may allocate from any thread. Errors: a refused allocation throws
// c10::OutOfMemoryError out of the operation that asked for it; out_of_memory() has the reason.
#ifndef DSAT_TRAINER_DEVICE_BUDGET_ALLOCATOR_H_
#define DSAT_TRAINER_DEVICE_BUDGET_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "device/device_memory.h"

namespace dsat::trainer {

// Installs the allocator for the whole process, for good: call it before the first tensor. nullopt: counts only.
// Called again, it changes the budget.
std::unique_ptr<DeviceMemory> install_budget(std::optional<uint64_t> budget_bytes);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_BUDGET_ALLOCATOR_H_
