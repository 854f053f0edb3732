// Runs a plugin's strategy in a process of its own, so that a crash, hang, exit or memory leak ends only that process.
//
// The process is restarted up to kMostRestarts times; its last saved state and the events since then restore it. After
// that the study ends with the plugin and the event in the message. Threading: as Strategy; the thread that creates it
// must outlive it. Ownership: owns the process. Errors: dsat::Error: the plugin's own error, as in the same process, or
// that its process is lost.
#ifndef DSAT_HOST_PLUGIN_ISOLATED_STRATEGY_H_
#define DSAT_HOST_PLUGIN_ISOLATED_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/plugins.h"
#include "plugin/plugin_process.h"
#include "plugin/request_limits.h"
#include "plugin/strategy.h"

namespace dsat::host {

inline constexpr int kMostRestarts = 3;

class IsolatedStrategy final : public Strategy {
 public:
  using Log = std::function<void(int severity, std::string_view message)>;

  static std::unique_ptr<Strategy> create(const PluginInfo& plugin, const Json& options, uint64_t seed,
                                          const PluginProcesses& settings, Log log, int most_restarts = kMostRestarts);
  // If the plugin dies while it is destroyed, there is a warning.
  ~IsolatedStrategy() override;

  std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) override;
  bool can_save() const override { return can_save_; }
  std::string save() override;
  void restore(const Json& study, const std::string& state) override;

 private:
  struct Past {
    StrategyEvent event;
    std::vector<Op> ops;
    uint64_t next_id;  // at the time of the event
  };
  IsolatedStrategy(const PluginInfo& plugin, const Json& options, uint64_t seed, const PluginProcesses& settings,
                   Log log, int most_restarts);
  template <class Body>
  auto surviving(const std::string& what, RequestAnswers* answers, Body&& body) -> decltype(body());
  void start();
  void rebuild();
  void restore_state(const Json& study, const std::string& state);
  std::vector<Op> deliver(const StrategyEvent& event, RequestAnswers& answers);
  Json await_answer(const Json& request, const std::optional<std::string>& bytes = std::nullopt);
  bool is_log(const Json& message);
  void log(int severity, std::string line);

  const PluginInfo plugin_;
  const Json options_;
  const uint64_t seed_;
  const PluginProcesses settings_;
  const Log log_;
  const int most_restarts_;
  bool muted_ = false;
  LogLimit log_limit_;

  std::unique_ptr<PluginProcess> process_;  // nullptr: must be started and restored
  bool can_save_ = false;
  int restarts_ = 0;

  // The data that restore a new process.
  Json study_;                        // needed with a state
  std::optional<std::string> state_;  // the last saved state
  std::vector<Past> since_;           // the events after it; all events if there is no state
};

// A plugin's process died, or did not answer, more often than it is restarted. All other errors are reported by the
// plugin.
class PluginLost : public Error {
 public:
  explicit PluginLost(const std::string& message) : Error(DSAT_INTERNAL, message) {}
};

// Reads in a separate process what a library offers. Throws Error and PluginLost.
std::vector<PluginInfo> describe_apart(const std::filesystem::path& file, const PluginProcesses& settings);

// Lets a separate process first do what a plugin will do in this process, so that a crash there is reported and ends
// nothing else. Throws PluginLost. Returns true if it went well. Returns false if the plugin reported an error, which
// it will report here too unless it needs something that only this process has; or if nothing was tried, because the
// plugin comes with dsat or there is no dsat-plugin-host.
bool try_apart(const std::filesystem::path& file, const PluginProcesses& settings, const std::function<void()>& body);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_ISOLATED_STRATEGY_H_
