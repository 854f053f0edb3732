// Shows signal handlers and other threads which call into a plugin is running. So a crash, an exit() or a hang in a
// plugin is reported with its name and the event. The public interface is dsat/host/plugin_calls.h.
// Threading: a PluginCall lives on the thread of the call. Ownership: none. Errors: none.
#ifndef DSAT_HOST_PLUGIN_PLUGIN_CALL_H_
#define DSAT_HOST_PLUGIN_PLUGIN_CALL_H_

#include <array>
#include <chrono>
#include <string>

namespace dsat::host {

class PluginCall {
 public:
  // A crash in another process (apart) is not a crash of this thread.
  enum class Where { in_process, apart };

  // `what`: "on_result of trial 3".
  PluginCall(const std::string& plugin, const std::string& what, Where where = Where::in_process);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

  const char* text() const { return text_.data(); }
  std::chrono::steady_clock::time_point began() const { return began_; }

 private:
  std::array<char, 256> text_{};
  std::chrono::steady_clock::time_point began_;
  const PluginCall* outer_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_CALL_H_
