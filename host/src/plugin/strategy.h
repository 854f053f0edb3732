// One searcher or profiler at work, as the study sees it: events in, the ops it asks for out.
//
// Purpose: the only file that calls into a plugin. It checks what comes back and collects an event's ops.
// Threading: control thread, but for the plugin's log calls, which may come from any thread and reach `Callbacks::log`
//   from there.
// Ownership: keeps the plugin's library mapped for its own life.
#ifndef DSAT_HOST_PLUGIN_STRATEGY_H_
#define DSAT_HOST_PLUGIN_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/plugins.h"
#include "dsat/host/status.h"
#include "plugin/plugin_library.h"

namespace dsat::host {

// What a strategy asked for in answer to one event.
struct Op {
  enum class Kind { create_trial, stop_trial, finish, set_profile };
  Kind kind = Kind::create_trial;
  // create_trial. `refused`: the trial limit was reached and there is no trial. The study's answer is part of what the
  // strategy decides by, so it is kept with the op and given again when the event is replayed.
  bool refused = false;
  bool repeat = false;
  std::optional<uint64_t> parent;
  Json overrides;
  std::string note;
  // create_trial, stop_trial: the trial. finish: the trial it believes best, if any.
  std::optional<uint64_t> trial;
  std::string reason;  // finish
  Json profile;        // set_profile
};
Json to_json(const Op& op);
Json to_json(const std::vector<Op>& ops);
Op op_from_json(const Json& json);

// What happens to a strategy. The JSON form is what the journal keeps.
struct StrategyEvent {
  enum class Kind { start, result, exited };
  Kind kind = Kind::start;
  Json study;          // start
  uint64_t trial = 0;  // result, exited
  uint64_t step = 0;   // result
  Json metrics;        // result: {name: number}
  int outcome = 0;     // exited: dsat_trial_outcome
  uint64_t peak_bytes = 0;
  int exit_code = -1, term_signal = 0;
  uint32_t attempt = 1;
  std::string reason;
};
Json to_json(const StrategyEvent& event);
StrategyEvent event_from_json(const Json& json);

class Strategy {
 public:
  struct Callbacks {
    // Decides on a request: its id, or nullopt at the trial limit. Called during an event; what it decides takes
    // effect only when the event is accepted.
    std::function<std::optional<uint64_t>(const Op& request)> create_trial;
    std::function<bool(uint64_t)> knows_trial;                        // was this id ever given out?
    std::function<void(int severity, std::string_view message)> log;  // [any-thread]
  };

  static Result<std::unique_ptr<Strategy>> create(const PluginInfo& plugin, const Json& options, uint64_t seed,
                                                  Callbacks callbacks);
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Answers its calls from now on.
  void redirect(Callbacks callbacks);

  // Hands over an event. On failure its ops are dropped; nothing may follow but the destructor.
  Result<std::vector<Op>> handle(const StrategyEvent& event);

  bool can_save() const;
  Result<std::string> save();
  Status restore(const Json& study, const std::string& state);

 private:
  struct HostSide;
  Strategy() = default;
  Status called(const char* function, dsat_status status);

  PluginLibrary library_;
  std::string name_;
  uint64_t seed_ = 0;
  std::unique_ptr<HostSide> host_;
  dsat_strategy* vtable_ = nullptr;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_STRATEGY_H_
