// Memory of the host: where offloaded states live. It lies outside the device's budget and is counted apart.
//
// Threading: counters are atomic. Errors: std::bad_alloc when the machine has no more.
#ifndef DSAT_TRAINER_DEVICE_OFFLOAD_MEMORY_H_
#define DSAT_TRAINER_DEVICE_OFFLOAD_MEMORY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace dsat::trainer {

// A flat array of zeros in host memory, aligned for vector code; freed with its last tensor. For exchange with a CUDA
// device it is page-locked.
at::Tensor host_zeros(int64_t size, at::ScalarType dtype, at::Device device = at::kCPU);

uint64_t host_memory_in_use();  // bytes
uint64_t host_memory_peak();    // bytes, the highest so far

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_OFFLOAD_MEMORY_H_
