// The process of its own that a plugin runs in, seen from the host.
//
// Purpose: starts dsat-plugin-host, sends it requests and receives what it answers, and ends it with all that it has
//   started. What the plugin prints is handed over line by line and never reaches a terminal as it is.
// Threading: one thread, and that thread has to outlive the process: it dies with it.
// Ownership: of the process, which the destructor ends.
// Errors: ProcessFailed: the process is of no use any more, and why ("was killed by signal 11 (Segmentation fault)").
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

class ProcessFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class PluginProcess {
 public:
  using Printed = std::function<void(const std::string& line)>;
  // True: that was the last message of the answer.
  using OnMessage = std::function<bool(const Message&)>;

  // Throws Error: it cannot be started.
  PluginProcess(const PluginProcesses& settings, Printed printed);
  ~PluginProcess();
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  // Sends a request, with bytes behind it where there are any, and hands over what comes back until the answer is
  // complete. In all the process has the time that the settings give for a call.
  void call(const Json& request, const OnMessage& on_message, const std::optional<std::string>& bytes = std::nullopt);
  // Within a call.
  void send(const std::string& frame);
  void renew_deadline() { deadline_ = std::chrono::steady_clock::now() + timeout_; }

  // Ends it: what it runs is destroyed first. "" or how that went wrong: "was killed by signal 11 (...)".
  std::string end();

 private:
  void await(short events);
  void receive();
  bool take_printed();  // false: it has closed its output
  void print_rest();
  [[noreturn]] void fail();
  bool wait_for_end(std::chrono::milliseconds limit);

  std::chrono::milliseconds timeout_;
  Printed printed_;
  Loop loop_;  // only to wait for the process's end
  int socket_ = -1, output_ = -1;
  std::unique_ptr<Subprocess> process_;
  pid_t pid_ = -1;
  bool ended_ = false;
  ExitStatus exit_status_;
  FrameReader reader_;
  std::string line_;  // that is printed, and not at its end
  std::chrono::steady_clock::time_point deadline_;
};

// dsat-plugin-host: as given, beside this program, or where it was installed. Throws Error: there is none.
std::filesystem::path find_plugin_host(const std::filesystem::path& given);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_PROCESS_H_
