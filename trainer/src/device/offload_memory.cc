#include "device/offload_memory.h"

#include <ATen/ops/from_blob.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "device/cuda_support.h"

namespace dsat::trainer {
namespace {

constexpr size_t kAlignment = 64;  // a cache line

std::atomic<uint64_t> in_use{0};
std::atomic<uint64_t> peak{0};

void count(size_t bytes) {
  const uint64_t now = in_use += bytes;
  uint64_t highest = peak;
  while (highest < now && !peak.compare_exchange_weak(highest, now)) {
  }
}

}  // namespace

at::Tensor host_zeros(int64_t size, at::ScalarType dtype, at::Device device) {
  const auto options = at::TensorOptions().dtype(dtype);
  const size_t bytes = static_cast<size_t>(size) * c10::elementSize(dtype);
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes + kAlignment) != 0) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  count(bytes);
  if (device.is_cuda()) lock_pages(memory, bytes);
  const auto release = [bytes, device](void* block) {
    in_use -= bytes;
    if (device.is_cuda()) unlock_pages(block);
    std::free(block);
  };
  return at::from_blob(memory, {size}, release, options);
}

uint64_t host_memory_in_use() { return in_use; }
uint64_t host_memory_peak() { return peak; }

}  // namespace dsat::trainer
