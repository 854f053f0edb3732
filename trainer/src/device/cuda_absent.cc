// What cuda_support.h declares, for builds with a LibTorch for the CPU: no device, and any use of one is refused.
// CMake compiles this file in place of cuda_support.cc, cuda_memory.cc and comm_nccl.cc.
#include "device/cuda_support.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

[[noreturn]] void refuse() { throw Error(DSAT_INTERNAL, "this program was built with a LibTorch for the CPU"); }

}  // namespace

const bool kHasCuda = false;

int cuda_device_count() { return 0; }
void use_cuda_device(int) { refuse(); }
uint64_t cuda_device_bytes(int) { refuse(); }
std::string cuda_device_identity(int) { refuse(); }
void lock_pages(void*, size_t) { refuse(); }
void unlock_pages(void*) { refuse(); }
std::unique_ptr<DeviceMemory> cuda_memory(int, std::optional<uint64_t>) { refuse(); }
std::unique_ptr<Comm> through_nccl(std::unique_ptr<Comm>) { refuse(); }

}  // namespace dsat::trainer
