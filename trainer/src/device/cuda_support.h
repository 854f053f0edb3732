// What a build with a CUDA LibTorch knows of CUDA. In other builds cuda_absent.cc stands in: it knows no device and
// refuses any use of one.
//
// Threading: any thread. Errors: dsat::Error; whatever LibTorch throws.
#ifndef DSAT_TRAINER_DEVICE_CUDA_SUPPORT_H_
#define DSAT_TRAINER_DEVICE_CUDA_SUPPORT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "device/device_memory.h"
#include "dsat/trainer/comm.h"

namespace dsat::trainer {

extern const bool kHasCuda;

int cuda_device_count();  // visible to this process; may start CUDA in it
void use_cuda_device(int index);
uint64_t cuda_device_bytes(int index);
// The PCI address: the same in every process of the machine, and different for every device.
std::string cuda_device_identity(int index);

// lock_pages() makes memory of the host known to CUDA, which then copies it without a buffer between; unlock_pages()
// ends that, before the memory is freed.
void lock_pages(void* memory, size_t bytes);
void unlock_pages(void* memory);

// LibTorch's caching allocator; what goes over the budget is refused. in_use() counts what tensors hold, as
// torch.cuda.max_memory_allocated does; the budget limits what the allocator takes from the device, which is more.
std::unique_ptr<DeviceMemory> cuda_memory(int index, std::optional<uint64_t> budget_bytes);

// Tensors of the device travel over NCCL, those of the host over `host`, a group of the same ranks. Each rank must have
// a device of its own, which is the process's current one. Collective.
std::unique_ptr<Comm> through_nccl(std::unique_ptr<Comm> host);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_CUDA_SUPPORT_H_
