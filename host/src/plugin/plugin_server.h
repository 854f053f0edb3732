// A plugin's own process, seen from inside: requests of the host in, answers out.
//
// Purpose: the program dsat-plugin-host is this and nothing else. The plugin is called by the same code as in the host
//   (PluginStrategy), so that it behaves alike in both.
// Threading: the main thread; what the plugin logs from others goes out from there. Errors: a failed request is
// answered
//   with its message; a connection that ends ends the process.
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
  // Answers {"call": "check", ...}; it may say what it does before it does it.
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
