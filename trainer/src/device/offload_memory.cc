// Arrays for offloaded states: taken from the system past LibTorch's allocator, whose bytes are the device's.
// A tensor over such an array frees it through a deleter that also takes its bytes off the counter.
#include "device/offload_memory.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "device/cuda_support.h"
#include "device/high_water_mark.h"
#include "dsat/base/units.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

constexpr size_t kAlignment = 64;  // a cache line

std::atomic<uint64_t> in_use{0};
HighWaterMark peak;

}  // namespace

at::Tensor host_zeros(int64_t size, at::ScalarType dtype, at::Device device) {
  const auto options = at::TensorOptions().dtype(dtype);
  const size_t bytes = static_cast<size_t>(size) * c10::elementSize(dtype);
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes + kAlignment) != 0) {
    throw Error(DSAT_INTERNAL, fmt::format("OutOfMemoryError: the host has no memory left for {} of offloaded states",
                                           format_size(static_cast<double>(bytes))));
  }
  // The system hands out pages at the first touch: a write of each makes sure now that they are there.
  std::memset(memory, 0, bytes);
  peak.raise_to(in_use += bytes);
  if (device.is_cuda()) lock_pages(memory, bytes);
  const auto release = [bytes, device](void* block) {
    in_use -= bytes;
    if (device.is_cuda()) unlock_pages(block);
    std::free(block);
  };
  return at::from_blob(memory, {size}, release, options);
}

at::Tensor state_zeros(int64_t size, at::ScalarType dtype, at::Device device, bool is_offloaded) {
  if (is_offloaded) return host_zeros(size, dtype, device);
  return at::zeros({size}, at::TensorOptions().dtype(dtype).device(device));
}

uint64_t host_memory_in_use() { return in_use; }
uint64_t host_memory_peak() { return peak.bytes(); }

}  // namespace dsat::trainer
