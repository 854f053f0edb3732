#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "device/cuda_support.h"

namespace dsat::trainer {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Of all pools, which come first; the type's name differs between versions of LibTorch.
auto bytes_of_tensors(c10::DeviceIndex index) { return allocator::getDeviceStats(index).allocated_bytes[0]; }

// The allocator keeps one peak. A window forgets it, so the highest before is kept here.
class CachingMemory : public DeviceMemory {
 public:
  CachingMemory(int index, uint64_t budget) : index_(static_cast<c10::DeviceIndex>(index)), budget_(budget) {}

  uint64_t in_use() const override { return static_cast<uint64_t>(bytes_of_tensors(index_).current); }
  uint64_t peak() const override { return std::max(before_, window_peak()); }
  void begin_window() override {
    before_ = peak();
    allocator::resetPeakStats(index_);
  }
  uint64_t window_peak() const override { return static_cast<uint64_t>(bytes_of_tensors(index_).peak); }
  std::optional<OutOfMemory> refused() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return refused_;
  }
  void forget_refusal() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    refused_.reset();
  }
  void refuse(uint64_t requested) {
    const uint64_t now = in_use();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!refused_) refused_ = OutOfMemory{requested, now, budget_};
  }

 private:
  c10::DeviceIndex index_;
  uint64_t budget_;
  uint64_t before_ = 0;
  mutable std::mutex mutex_;  // guards refused_
  std::optional<OutOfMemory> refused_;
};

}  // namespace

std::unique_ptr<DeviceMemory> cuda_memory(int index, std::optional<uint64_t> budget_bytes) {
  // LibTorch would do it with the first tensor, and knows no device before.
  allocator::init(cuda_device_count());
  const uint64_t total = cuda_device_bytes(index);
  const uint64_t budget = std::min(budget_bytes.value_or(total), total);
  auto memory = std::make_unique<CachingMemory>(index, budget);
  if (budget < total) {
    const double share = static_cast<double>(budget) / static_cast<double>(total);
    allocator::setMemoryFraction(share, static_cast<c10::DeviceIndex>(index));
  }
  // It lives as long as the process (use_memory), and the allocator's lock is free or this thread's own here. Others
  // than LibTorch's own allocator have no observers.
  if (allocator::name() == "native") {
    allocator::attachOutOfMemoryObserver(
        [seen = memory.get()](int64_t, size_t requested, size_t, size_t) { seen->refuse(requested); });
  }
  return memory;
}

}  // namespace dsat::trainer
