// Memory of the host: where offloaded states live. It lies outside the device's budget and is counted apart.
//
// Ownership: a tensor owns its memory; the last one of a storage frees it. Threading: counters are atomic. Errors:
// dsat::Error "OutOfMemoryError: ..." when the machine has no more; hosts of trials recognise that word.
#ifndef DSAT_TRAINER_DEVICE_OFFLOAD_MEMORY_H_
#define DSAT_TRAINER_DEVICE_OFFLOAD_MEMORY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace dsat::trainer {

// A flat array of zeros in host memory, aligned for vector code. For exchange with a CUDA `device` it is page-locked.
at::Tensor host_zeros(int64_t size, at::ScalarType dtype, at::Device device = at::kCPU);

// A flat array of zeros for a model state: on `device`, or where the settings offload that state in host memory.
at::Tensor state_zeros(int64_t size, at::ScalarType dtype, at::Device device, bool is_offloaded);

uint64_t host_memory_in_use();  // bytes
uint64_t host_memory_peak();    // bytes, the highest so far

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_OFFLOAD_MEMORY_H_
