#include "device/budget_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

namespace dsat::trainer {
namespace {

// Holds the size in front of the block; a cache line, so that the block stays aligned for vector code.
constexpr size_t kHeader = 64;

class DeviceOutOfMemory : public c10::OutOfMemoryError {
 public:
  explicit DeviceOutOfMemory(const std::string& message)
      : c10::OutOfMemoryError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message) {}
};

struct Counters {
  std::atomic<uint64_t> in_use{0};
  std::atomic<uint64_t> peak{0}, window_peak{0};
  uint64_t budget = UINT64_MAX;
  std::mutex mutex;  // guards refused
  std::optional<OutOfMemory> refused;
};

// Never destroyed: blocks are freed until the process is gone.
Counters& counters() {
  static Counters* const instance = new Counters;
  return *instance;
}

[[noreturn]] void refuse(uint64_t requested, uint64_t in_use, uint64_t budget) {
  const OutOfMemory failure{requested, in_use, budget};
  {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    if (!counters().refused) counters().refused = failure;
  }
  throw DeviceOutOfMemory(describe(failure));
}

void release(void* block) {
  if (block == nullptr) return;
  char* const base = static_cast<char*>(block) - kHeader;
  counters().in_use -= *reinterpret_cast<uint64_t*>(base);
  std::free(base);
}

void raise(std::atomic<uint64_t>& highest, uint64_t value) {
  uint64_t seen = highest;
  while (seen < value && !highest.compare_exchange_weak(seen, value)) {
  }
}

void* take(size_t bytes) {
  Counters& c = counters();
  const uint64_t now = c.in_use += bytes;
  if (now > c.budget) {
    c.in_use -= bytes;
    refuse(bytes, now - bytes, c.budget);
  }
  void* base = nullptr;
  if (posix_memalign(&base, kHeader, bytes + kHeader) != 0) {
    c.in_use -= bytes;
    refuse(bytes, now - bytes, 0);
  }
  *static_cast<uint64_t*>(base) = bytes;
  raise(c.peak, now);
  raise(c.window_peak, now);
  return static_cast<char*>(base) + kHeader;
}

c10::DataPtr allocate_on_cpu(size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, &release, cpu};
  void* const block = take(bytes);
  return {block, block, &release, cpu};
}

class BudgetAllocator : public c10::Allocator {
 public:
#if DSAT_LIBTORCH_MAJOR < 2
  c10::DataPtr allocate(size_t bytes) const override { return allocate_on_cpu(bytes); }
#else
  c10::DataPtr allocate(size_t bytes) override { return allocate_on_cpu(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

class CountedMemory : public DeviceMemory {
 public:
  uint64_t in_use() const override { return counters().in_use; }
  uint64_t peak() const override { return counters().peak; }
  void begin_window() override { counters().window_peak = counters().in_use.load(); }
  uint64_t window_peak() const override { return counters().window_peak; }
  std::optional<OutOfMemory> refused() const override {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    return counters().refused;
  }
  void forget_refusal() override {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    counters().refused.reset();
  }
};

}  // namespace

std::unique_ptr<DeviceMemory> install_budget(std::optional<uint64_t> budget_bytes) {
  static BudgetAllocator* const allocator = new BudgetAllocator;
  counters().budget = budget_bytes.value_or(UINT64_MAX);
  c10::SetCPUAllocator(allocator, /*priority=*/100);
  return std::make_unique<CountedMemory>();
}

}  // namespace dsat::trainer
