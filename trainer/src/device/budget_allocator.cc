// Stands in for a GPU's memory: LibTorch's CPU allocator is replaced by one that counts tensors against a budget.
// Each block has a header in front of it with its size, because LibTorch frees a block without naming its size. Blocks
// are aligned here: glibc's own aligned allocation asks for more than a block takes, so a block that was freed has no
// room for the next one of its size, and a rank's memory grows by a tenth.
#include "device/budget_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>

#include "device/high_water_mark.h"

namespace dsat::trainer {
namespace {

// The header takes a whole cache line, so that the block after it stays aligned for vector code.
struct Header {
  uint64_t bytes;
  void* memory;  // what malloc() gave
};
constexpr size_t kLine = 64;

class DeviceOutOfMemory : public c10::OutOfMemoryError {
 public:
  explicit DeviceOutOfMemory(const std::string& message)
      : c10::OutOfMemoryError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message) {}
};

struct Counters {
  std::atomic<uint64_t> in_use{0};
  HighWaterMark peak, window_peak;
  uint64_t budget = UINT64_MAX;
  FirstRefusal refusal;
};

// Never destroyed: blocks are freed until the process is gone.
Counters& counters() {
  static Counters* const instance = new Counters;
  return *instance;
}

[[noreturn]] void refuse(uint64_t requested, uint64_t in_use, uint64_t budget) {
  const OutOfMemory failure{requested, in_use, budget};
  counters().refusal.note(failure);
  throw DeviceOutOfMemory(describe(failure));
}

void release(void* block) {
  if (block == nullptr) return;
  const Header& header = *reinterpret_cast<Header*>(static_cast<char*>(block) - kLine);
  counters().in_use -= header.bytes;
  std::free(header.memory);
}

// Counts first and takes the memory then, so that two threads cannot both pass the last bytes of the budget.
void* take(size_t bytes) {
  Counters& c = counters();
  const uint64_t now = c.in_use += bytes;
  if (now > c.budget) {
    c.in_use -= bytes;
    refuse(bytes, now - bytes, c.budget);
  }
  void* const memory = std::malloc(bytes + 2 * kLine);
  if (memory == nullptr) {
    c.in_use -= bytes;
    refuse(bytes, now - bytes, 0);
  }
  char* const base = static_cast<char*>(memory) + (kLine - reinterpret_cast<uintptr_t>(memory) % kLine);
  *reinterpret_cast<Header*>(base) = {bytes, memory};
  c.peak.raise_to(now);
  c.window_peak.raise_to(now);
  return base + kLine;
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
  uint64_t peak() const override { return counters().peak.bytes(); }
  void restart_peak() override { counters().peak.reset(counters().in_use); }
  void begin_window() override { counters().window_peak.reset(counters().in_use); }
  uint64_t window_peak() const override { return counters().window_peak.bytes(); }
  FirstRefusal& refusal() override { return counters().refusal; }
};

}  // namespace

std::unique_ptr<DeviceMemory> install_budget(std::optional<uint64_t> budget_bytes) {
  static BudgetAllocator* const allocator = new BudgetAllocator;
  counters().budget = budget_bytes.value_or(UINT64_MAX);
  c10::SetCPUAllocator(allocator, /*priority=*/100);  // above LibTorch's own, which have lower ones
  return std::make_unique<CountedMemory>();
}

}  // namespace dsat::trainer
