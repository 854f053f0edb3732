// Signal handlers use a thread-local pointer, other threads a list behind a mutex. Each thread that calls plugins gets
// an alternate signal stack, because a plugin may have used up the thread's stack.
#include "plugin/plugin_call.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "dsat/host/plugin_calls.h"

namespace dsat::host {
namespace {

thread_local const PluginCall* t_call = nullptr;

struct Calls {
  std::mutex mutex;
  std::vector<const PluginCall*> all;
};
// Never destroyed, since a plugin's thread may outlive every static object.
Calls& calls() {
  static Calls& instance = *new Calls;
  return instance;
}

class AlternateStack {
 public:
  AlternateStack() {
    stack_t present{};
    if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique<char[]>(kBytes);
    stack_t own{};
    own.ss_sp = memory_.get();
    own.ss_size = kBytes;
    if (sigaltstack(&own, nullptr) != 0) memory_.reset();
  }
  ~AlternateStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  static constexpr size_t kBytes = size_t{64} << 10;
  std::unique_ptr<char[]> memory_;
};

}  // namespace

PluginCall::PluginCall(const std::string& plugin, const std::string& what, Where where)
    : began_(std::chrono::steady_clock::now()), outer_(t_call) {
  const std::string text = "plugin " + plugin + ": " + what;
  std::copy_n(text.begin(), std::min(text.size(), text_.size() - 1), text_.begin());
  if (where == Where::in_process) {
    thread_local const AlternateStack stack;
    (void)stack;
    t_call = this;
  }
  const std::lock_guard<std::mutex> lock(calls().mutex);
  calls().all.push_back(this);
}

PluginCall::~PluginCall() {
  t_call = outer_;
  const std::lock_guard<std::mutex> lock(calls().mutex);
  auto& all = calls().all;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
}

const char* plugin_call_of_this_thread() noexcept { return t_call == nullptr ? nullptr : t_call->text(); }

std::optional<RunningPluginCall> oldest_plugin_call() {
  const std::lock_guard<std::mutex> lock(calls().mutex);
  const auto& all = calls().all;
  const auto oldest = std::min_element(
      all.begin(), all.end(), [](const PluginCall* a, const PluginCall* b) { return a->began() < b->began(); });
  if (oldest == all.end()) return std::nullopt;
  const auto age = std::chrono::steady_clock::now() - (*oldest)->began();
  return RunningPluginCall{(*oldest)->text(), std::chrono::duration_cast<std::chrono::milliseconds>(age)};
}

}  // namespace dsat::host
