// The program dsat-plugin-host: requests of the host in, answers out. PluginStrategy calls the plugin here as in the
// host, so the plugin behaves alike in both.
// Threading: the main thread; log lines of the plugin's other threads are sent from these. Errors: a failed request is
// answered with its message; the process ends when the connection ends.
#ifndef DSAT_HOST_PLUGIN_PLUGIN_SERVER_H_
#define DSAT_HOST_PLUGIN_PLUGIN_SERVER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "dsat/host/plugins.h"
#include "plugin/framing.h"
#include "plugin/strategy.h"

namespace dsat::host {

class PluginServer {
 public:
  using Doing = std::function<void(const std::string&)>;
  // Answers {"call": "check", ...}; calls `doing` before each step.
  using Check = std::function<Json(const Json& request, const Doing& doing)>;

  explicit PluginServer(int fd, Check check = nullptr) : fd_(fd), check_(std::move(check)) {}

  // Returns when the host has closed the connection.
  void run();

 private:
  class AskHost;
  void answer(const Json& request);
  Json describe(const Json& request);
  Json create(const Json& request);
  void send(const std::string& frame);
  Message receive();
  Json receive_answer();

  int fd_;
  Check check_;
  std::mutex send_mutex_;
  FrameReader reader_;
  std::unique_ptr<Strategy> strategy_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_SERVER_H_
