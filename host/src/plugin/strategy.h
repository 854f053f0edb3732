// One searcher or profiler at work, as the study sees it: events in, the ops it asks for out.
//
// Purpose: Strategy is what a study works with; the host has some of its own (finals/host_strategy.h). PluginStrategy
// is
//   the only class that calls into a plugin. It checks what comes back and collects an event's ops.
// Threading: control thread, but for the plugin's log calls, which may come from any thread and reach `Log` from there.
// Ownership: keeps the plugin's library mapped for its own life.
// Errors: dsat::Error, "plugin NAME: FUNCTION: what the plugin says", DSAT_INTERNAL.
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
  uint64_t peak_bytes = 0, peak_above_bytes = 0, allocator_retries = 0;
  int exit_code = -1, term_signal = 0;
  uint32_t attempt = 1;
  std::string reason;
};
Json to_json(const StrategyEvent& event);
StrategyEvent event_from_json(const Json& json);

// Answers what a strategy asks for while it handles one event. What it decides takes effect only when the event is
// accepted.
class RequestAnswers {
 public:
  virtual ~RequestAnswers() = default;
  // The new trial's id, or nullopt at the trial limit.
  virtual std::optional<uint64_t> create_trial(const Op& request) = 0;
  // Was this id ever given out?
  virtual bool knows_trial(uint64_t id) const = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Hands over an event and returns the ops of its answer. When this throws, nothing may follow but the destructor.
  virtual std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) = 0;

  // A strategy without a state of its own is brought back by its events.
  virtual bool can_save() const { return false; }
  virtual std::string save() { return {}; }
  virtual void restore(const Json& /*study*/, const std::string& /*state*/) {}
};

class PluginStrategy final : public Strategy {
 public:
  using Log = std::function<void(int severity, std::string_view message)>;  // [any-thread]

  static std::unique_ptr<Strategy> create(const PluginInfo& plugin, const Json& options, uint64_t seed, Log log);
  ~PluginStrategy() override;

  std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) override;
  bool can_save() const override;
  std::string save() override;
  void restore(const Json& study, const std::string& state) override;

 private:
  struct HostSide;
  PluginStrategy() = default;
  void check(const char* function, dsat_status status);

  std::shared_ptr<const PluginLibrary> library_;
  std::string name_;
  uint64_t seed_ = 0;
  uint32_t exit_size_ = sizeof(dsat_exit);  // as the plugin's header has it
  std::unique_ptr<HostSide> host_;
  dsat_strategy* vtable_ = nullptr;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_STRATEGY_H_
