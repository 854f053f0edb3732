// What the trainer asks of CUDA, in builds with a CUDA LibTorch: thin calls of c10::cuda and of the CUDA runtime.
// A call whose failure only costs time (page locking) clears CUDA's last error and goes on.
#include "device/cuda_support.h"

#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

[[noreturn]] void refuse(int index, const char* what, cudaError_t error) {
  throw Error(DSAT_INTERNAL,
              fmt::format("cannot read the {} of CUDA device {}: {}", what, index, cudaGetErrorString(error)));
}

}  // namespace

const bool kHasCuda = true;

int cuda_device_count() { return c10::cuda::device_count(); }

void use_cuda_device(int index) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

uint64_t cuda_device_bytes(int index) {
  cudaDeviceProp properties{};
  const cudaError_t error = cudaGetDeviceProperties(&properties, index);
  if (error != cudaSuccess) refuse(index, "memory size", error);
  return properties.totalGlobalMem;
}

// Memory that stays unlocked is copied as well, only slower.
void lock_pages(void* memory, size_t bytes) {
  if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) != cudaSuccess) cudaGetLastError();
}
void unlock_pages(void* memory) {
  if (cudaHostUnregister(memory) != cudaSuccess) cudaGetLastError();
}

std::string cuda_device_identity(int index) {
  char bus_id[32];
  const cudaError_t error = cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index);
  if (error != cudaSuccess) refuse(index, "PCI address", error);
  return bus_id;
}

}  // namespace dsat::trainer
