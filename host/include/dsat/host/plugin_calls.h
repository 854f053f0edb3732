// What goes on inside plugins, for a program that has to say why it hangs or dies.
//
// The library handles no signals. A program that does asks here which plugin its thread was in.
// Threading: any thread. Errors: none.
#ifndef DSAT_HOST_PLUGIN_CALLS_H_
#define DSAT_HOST_PLUGIN_CALLS_H_

#include <chrono>
#include <optional>
#include <string>

namespace dsat::host {

// "plugin climb: on_result of trial 3": the call that this thread is in, or nullptr. Async-signal-safe. During such a
// call a thread has an alternate signal stack.
const char* plugin_call_of_this_thread() noexcept;

struct RunningPluginCall {
  std::string text;  // as above
  std::chrono::milliseconds age{0};
};

// The call of this process, or of a plugin's own process, that has lasted longest.
std::optional<RunningPluginCall> oldest_plugin_call();

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_CALLS_H_
