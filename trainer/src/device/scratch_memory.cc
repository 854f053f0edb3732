// A thread-local callback of at::RecordFunction opens a memory window at the start of each outermost operation and
// reads the window's peak at its end. Operations that others call are inside the outermost one's window.
#include "device/scratch_memory.h"

#include <algorithm>
#include <memory>

#include "device/device_memory.h"

namespace dsat::trainer {
namespace {

thread_local int depth = 0;  // operations under way, each called by the one before
thread_local uint64_t highest = 0, highest_with_scratch = 0;

// Lives from an operation's start to its end.
struct Operation : at::ObserverContext {
  Operation() : before(memory_in_use()) {
    if (depth++ == 0) begin_memory_window();
  }
  ~Operation() override {
    if (--depth > 0) return;
    const uint64_t peak = memory_window_peak();
    highest = std::max(highest, peak);
    // What an operation returns is in use after it; more than that was scratch.
    if (peak > std::max(before, memory_in_use())) highest_with_scratch = std::max(highest_with_scratch, peak);
  }
  uint64_t before;
};

std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction&) { return std::make_unique<Operation>(); }

}  // namespace

ScratchMemoryWatch::ScratchMemoryWatch()
    : callback_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(&on_operation).scopes({at::RecordScope::FUNCTION}))) {
  highest = highest_with_scratch = 0;
}

ScratchMemoryWatch::~ScratchMemoryWatch() { at::removeCallback(callback_); }

uint64_t ScratchMemoryWatch::highest_bytes() const { return highest; }
uint64_t ScratchMemoryWatch::highest_with_scratch_bytes() const { return highest_with_scratch; }

}  // namespace dsat::trainer
