// A plugin's strategy in a process of its own.
//
// Purpose: a plugin that crashes, hangs, exits or eats memory costs its process and not the study. The process is
//   started again and brought back to where it was, from its last saved state and the events since then, up to
//   kMostRestarts times; then the study ends and names plugin and event.
// Threading: as Strategy; the thread that creates it has to outlive it. Ownership: of the process.
// Errors: dsat::Error: the plugin's own error, word by word as in the same process; or that its process is lost.
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
  // A plugin that dies as it is destroyed is a warning.
  ~IsolatedStrategy() override;

  std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) override;
  bool can_save() const override { return can_save_; }
  std::string save() override;
  void restore(const Json& study, const std::string& state) override;

 private:
  struct Past {
    StrategyEvent event;
    std::vector<Op> ops;
    uint64_t next_id;  // when it happened
  };
  IsolatedStrategy(const PluginInfo& plugin, const Json& options, uint64_t seed, const PluginProcesses& settings,
                   Log log, int most_restarts);
  template <class Body>
  auto surviving(const std::string& what, RequestAnswers* answers, Body&& body) -> decltype(body());
  void start();
  void bring_back();
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

  std::unique_ptr<PluginProcess> process_;  // none: it has to be started, and brought back
  bool can_save_ = false;
  int restarts_ = 0;

  // What brings a new process to where this one is.
  Json study_;                        // with a state
  std::optional<std::string> state_;  // the last one
  std::vector<Past> since_;           // the events after it; without one all
};

// The process of a plugin has died, or has not answered, more often than it is started again. Whatever else a plugin
// does wrong it has reported itself.
class PluginLost : public Error {
 public:
  explicit PluginLost(const std::string& message) : Error(DSAT_INTERNAL, message) {}
};

// What a library offers, read in a process of its own. Throws Error, and PluginLost.
std::vector<PluginInfo> describe_apart(const std::filesystem::path& file, const PluginProcesses& settings);

// Has a process of its own do first what a plugin is to do in this one: what dies there has a name and ends nothing
// else. Throws PluginLost. True: it went well. False: the plugin has reported something, which it will report here too,
// in its own words, unless it needs something that only this process has; or nothing was tried, since the plugin comes
// with dsat or there is no dsat-plugin-host.
bool try_apart(const std::filesystem::path& file, const PluginProcesses& settings,
               const std::function<void(const PluginProcesses&)>& body);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_ISOLATED_STRATEGY_H_
