// Reads one request after another. During an event, create_trial asks the host and waits; all other ops are sent with
// the event's answer.
#include "plugin/plugin_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "plugin/plugin_info_json.h"
#include "plugin/plugin_library.h"
#include "plugin/plugin_strategy.h"

namespace dsat::host {
namespace {

struct ConnectionEnded {};

}  // namespace

// Gets the study's answers from the host.
class PluginServer::AskHost : public RequestAnswers {
 public:
  AskHost(PluginServer& server, uint64_t known) : server_(server), known_(known) {}

  std::optional<uint64_t> create_trial(const Op& request) override {
    server_.send(framed({{"ask", "create_trial"}, {"request", to_json(request)}}));
    const Json answer = server_.receive_answer();
    if (answer["trial"].is_null()) return std::nullopt;
    const auto id = answer["trial"].get<uint64_t>();
    known_ = std::max(known_, id + 1);
    return id;
  }
  uint64_t next_id() const override { return known_; }

 private:
  PluginServer& server_;
  uint64_t known_;  // ids below this exist
};

void PluginServer::send(const std::string& frame) {
  const std::lock_guard<std::mutex> lock(send_mutex_);
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t written = ::send(fd_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (written < 0 && errno != EINTR) return;  // the host has ended; a destructor may still finish its work
    if (written > 0) sent += static_cast<size_t>(written);
  }
}

Message PluginServer::receive() {
  while (true) {
    if (std::optional<Message> message = reader_.next()) return *std::move(message);
    std::array<char, 65536> chunk{};
    const ssize_t got = recv(fd_, chunk.data(), chunk.size(), 0);
    if (got == 0 || (got < 0 && errno != EINTR)) throw ConnectionEnded();
    if (got > 0) reader_.append(chunk.data(), static_cast<size_t>(got));
  }
}

// In the middle of a call the process can only exit.
Json PluginServer::receive_answer() {
  try {
    return receive().json();
  } catch (const ConnectionEnded&) {
    _exit(0);
  }
}

Json PluginServer::describe(const Json& request) {
  Json plugins = Json::array();
  for (const PluginInfo& info : PluginLibrary::load(request.at("file").get<std::string>())->describe()) {
    plugins.push_back(to_json(info));
  }
  return {{"plugins", std::move(plugins)}};
}

Json PluginServer::create(const Json& request) {
  const auto id = request.at("id").get<std::string>();
  const auto kind = static_cast<PluginKind>(request.at("kind").get<int>());
  for (const PluginInfo& info : PluginLibrary::load(request.at("file").get<std::string>())->describe()) {
    if (info.id != id || info.kind != kind) continue;
    strategy_ = PluginStrategy::create(info, request.at("options"), request.at("seed").get<uint64_t>(),
                                       [this](int severity, std::string_view line) {
                                         send(framed({{"log", severity}, {"line", std::string(line)}}));
                                       });
    return {{"can_save", strategy_->can_save()}};
  }
  throw Error("plugin " + request.at("file").get<std::string>() + ": no longer offers " + id);
}

void PluginServer::answer(const Json& request) {
  const auto call = request.at("call").get<std::string>();
  if (call == "describe") return send(framed(describe(request)));
  if (call == "check" && check_) {
    const auto doing = [this](const std::string& what) { send(framed({{"doing", what}})); };
    return send(framed(check_(request, doing)));
  }
  if (call == "create") return send(framed(create(request)));
  if (!strategy_) throw Error(DSAT_FAILED_PRECONDITION, "no strategy was created");
  if (call == "save") return send(framed_bytes(strategy_->save()));
  if (call == "restore") {
    strategy_->restore(request.at("study"), receive().body);
    return send(framed({{"done", true}}));
  }
  AskHost answers(*this, request.at("known").get<uint64_t>());
  const std::vector<Op> ops = strategy_->handle(event_from_json(request.at("event")), answers);
  send(framed({{"ops", to_json(ops)}}));
}

void PluginServer::run() {
  try {
    while (true) {
      const Json request = receive().json();
      try {
        answer(request);
      } catch (const Error& error) {
        send(framed({{"error", error.what()}, {"code", error.code()}}));
      } catch (const std::exception& error) {
        send(framed({{"error", error.what()}, {"code", DSAT_INTERNAL}}));
      }
    }
  } catch (const ConnectionEnded&) {
    strategy_.reset();
  } catch (const Error&) {  // the host sent data that is no message
  }
}

}  // namespace dsat::host
