// The memory of a CUDA device as LibTorch's caching allocator counts it, with a budget below the device's own size.
// The allocator refuses what goes over the budget by itself; an observer of it keeps the first refusal.
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>

#include "device/cuda_support.h"

namespace dsat::trainer {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// The first entry sums up all pools. The type's name differs between versions of LibTorch.
auto bytes_of_tensors(c10::DeviceIndex index) { return allocator::getDeviceStats(index).allocated_bytes[0]; }

// The allocator keeps one peak, which a window resets; the highest peak before the window is kept here.
class CachingMemory : public DeviceMemory {
 public:
  CachingMemory(int index, uint64_t budget) : index_(static_cast<c10::DeviceIndex>(index)), budget_(budget) {}

  uint64_t in_use() const override { return static_cast<uint64_t>(bytes_of_tensors(index_).current); }
  uint64_t peak() const override { return std::max(peak_before_window_, window_peak()); }
  void restart_peak() override {
    peak_before_window_ = 0;
    allocator::resetPeakStats(index_);
  }
  void begin_window() override {
    peak_before_window_ = peak();
    allocator::resetPeakStats(index_);
  }
  uint64_t window_peak() const override { return static_cast<uint64_t>(bytes_of_tensors(index_).peak); }
  FirstRefusal& refusal() override { return refusal_; }
  void note_refusal(uint64_t requested) { refusal_.note({requested, in_use(), budget_}); }

 private:
  c10::DeviceIndex index_;
  uint64_t budget_;
  uint64_t peak_before_window_ = 0;
  FirstRefusal refusal_;
};

}  // namespace

std::unique_ptr<DeviceMemory> cuda_memory(int index, std::optional<uint64_t> budget_bytes) {
  // LibTorch would initialise the allocator with the first tensor; before that it knows no device.
  allocator::init(cuda_device_count());
  const uint64_t total = cuda_device_bytes(index);
  const uint64_t budget = std::min(budget_bytes.value_or(total), total);
  auto memory = std::make_unique<CachingMemory>(index, budget);
  if (budget < total) {
    const double share = static_cast<double>(budget) / static_cast<double>(total);
    allocator::setMemoryFraction(share, static_cast<c10::DeviceIndex>(index));
  }
  // The observer may borrow `memory`, which lives as long as the process (set_device_memory). It may ask the allocator,
  // whose lock is free or this thread's own when it is called. Only LibTorch's own allocator has observers.
  if (allocator::name() == "native") {
    allocator::attachOutOfMemoryObserver(
        [seen = memory.get()](int64_t, size_t requested, size_t, size_t) { seen->note_refusal(requested); });
  }
  return memory;
}

}  // namespace dsat::trainer
