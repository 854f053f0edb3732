// The host's side of a plugin's process: starts dsat-plugin-host, sends requests, receives answers, and ends the
// process with all its children. What the plugin prints is passed on line by line and never goes to the terminal
// directly.
// Threading: one thread, which must outlive the process, since the process dies with it. Ownership: owns the process;
// the destructor ends it. Errors: ProcessFailed: the process cannot be used any more, with the reason ("was killed by
// signal 11 (Segmentation fault)").
#ifndef DSAT_HOST_PLUGIN_PLUGIN_PROCESS_H_
#define DSAT_HOST_PLUGIN_PLUGIN_PROCESS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "dsat/host/settings.h"
#include "plugin/framing.h"

namespace dsat::host {

// Data of a plugin's process; address space that is only reserved does not count.
inline constexpr uint64_t kPluginMemoryBytes = uint64_t{4} << 30;

class ProcessFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class PluginProcess {
 public:
  using Printed = std::function<void(const std::string& line)>;
  // Returns true if this was the last message of the answer.
  using OnMessage = std::function<bool(const Message&)>;

  // A process for the plugin `file`. Throws Error: it cannot be started.
  PluginProcess(const PluginProcesses& settings, const std::filesystem::path& file, Printed printed);
  ~PluginProcess();
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  // Sends a request, and `bytes` after it, and passes on received messages until the answer is complete. The time limit
  // is that of one call.
  void call(const Json& request, const OnMessage& on_message, const std::optional<std::string>& bytes = std::nullopt);
  // Sends a message during a call.
  void send(const std::string& frame);
  void renew_deadline() { deadline_ = std::chrono::steady_clock::now() + timeout_; }

  // Destroys the plugin's strategy and ends the process. Returns "" or how that failed: "was killed by signal 11
  // (...)".
  std::string end();

 private:
  void await(short events);
  void receive();
  bool take_printed();  // false: the output is closed
  void print_rest();
  [[noreturn]] void fail();
  bool wait_for_end(std::chrono::milliseconds limit);

  std::chrono::milliseconds timeout_;
  Printed printed_;
  Loop loop_;  // only waits for the end of the process
  int socket_ = -1, output_ = -1;
  std::unique_ptr<Subprocess> process_;
  pid_t pid_ = -1;
  bool ended_ = false;
  ExitStatus exit_status_;
  FrameReader reader_;
  std::string line_;  // printed text without a line end yet
  std::chrono::steady_clock::time_point deadline_;
};

// Finds dsat-plugin-host: `given`, beside this program, or where it was installed. Throws Error: there is none, or it
// may not run.
std::filesystem::path find_plugin_host(const std::filesystem::path& given);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_PROCESS_H_
