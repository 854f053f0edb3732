#include "device/cuda_support.h"

#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include "dsat/error.h"

namespace dsat::trainer {

const bool kHasCuda = true;

int cuda_device_count() { return c10::cuda::device_count(); }

void use_cuda_device(int index) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

uint64_t cuda_device_bytes(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    throw Error(DSAT_INTERNAL, "CUDA device " + std::to_string(index) + " does not tell its memory");
  }
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
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) != cudaSuccess) {
    throw Error(DSAT_INTERNAL, "CUDA device " + std::to_string(index) + " does not tell where it is");
  }
  return bus_id;
}

}  // namespace dsat::trainer
