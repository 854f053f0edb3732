// The calls into plugins that are in progress, for a program that reports why it hangs or dies.
//
// The library handles no signals. The program's own signal handlers ask here which plugin was called.
// Threading: any thread. Errors: none.
#ifndef DSAT_HOST_PLUGIN_CALLS_H_
#define DSAT_HOST_PLUGIN_CALLS_H_

#include <chrono>
#include <optional>
#include <string>

namespace dsat::host {

// The call that this thread is in, as "plugin climb: on_result of trial 3", or nullptr. Async-signal-safe. During a
// call the thread has an alternate signal stack.
const char* plugin_call_of_this_thread() noexcept;

struct RunningPluginCall {
  std::string text;  // as plugin_call_of_this_thread() gives it
  std::chrono::milliseconds age{0};
};

// The longest call of this process, or of a plugin's own process, that is in progress.
std::optional<RunningPluginCall> oldest_plugin_call();

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_CALLS_H_
