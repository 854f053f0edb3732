#include "device/scratch_memory.h"

#include <algorithm>
#include <memory>

#include "device/device_memory.h"

namespace dsat::trainer {
namespace {

thread_local int depth = 0;  // of operations inside each other
thread_local uint64_t highest = 0, highest_with_scratch = 0;

// From an operation's start to its end.
struct Operation : at::ObserverContext {
  Operation() : before(memory_in_use()) {
    if (depth++ == 0) begin_memory_window();
  }
  ~Operation() override {
    if (--depth > 0) return;
    const uint64_t peak = memory_window_peak();
    highest = std::max(highest, peak);
    if (peak > std::max(before, memory_in_use())) highest_with_scratch = std::max(highest_with_scratch, peak);
  }
  uint64_t before;
};

std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction&) { return std::make_unique<Operation>(); }

}  // namespace

ScratchWatch::ScratchWatch()
    : callback_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(&on_operation).scopes({at::RecordScope::FUNCTION}))) {
  highest = highest_with_scratch = 0;
}

ScratchWatch::~ScratchWatch() { at::removeCallback(callback_); }

uint64_t ScratchWatch::highest_bytes() const { return highest; }
uint64_t ScratchWatch::highest_with_scratch_bytes() const { return highest_with_scratch; }

}  // namespace dsat::trainer
