// A running searcher or profiler, as the study sees it: events in, requested ops out.
//
// A plugin is a Strategy in this process (plugin_strategy.h) or in its own (isolated_strategy.h); the host has
// strategies of its own (finals/host_strategy.h). Threading: control thread. Errors: dsat::Error, DSAT_INTERNAL.
#ifndef DSAT_HOST_PLUGIN_STRATEGY_H_
#define DSAT_HOST_PLUGIN_STRATEGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::host {

// A strategy's request in answer to an event.
struct Op {
  enum class Kind { create_trial, stop_trial, finish, set_profile };
  Kind kind = Kind::create_trial;
  // create_trial. `refused`: the trial limit was reached, so there is no trial. The strategy's later decisions depend
  // on this answer, so it is kept with the op and given again when the event is replayed.
  bool refused = false;
  bool repeat = false;
  std::optional<uint64_t> parent;
  Json overrides;
  std::string note;
  // create_trial, stop_trial: the trial. finish: the best trial in the strategy's opinion, if any.
  std::optional<uint64_t> trial;
  std::string reason;  // finish
  Json profile;        // set_profile
};
Json to_json(const Op& op);
Json to_json(const std::vector<Op>& ops);
Op op_from_json(const Json& json);

// An event for a strategy. The journal keeps its JSON form.
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
std::string call_of(const StrategyEvent& event);  // "on_result of trial 3"

// Answers a strategy's requests during one event. The answers take effect only when the event is accepted.
class RequestAnswers {
 public:
  virtual ~RequestAnswers() = default;
  // Returns the new trial's id; nullopt: the trial limit is reached.
  virtual std::optional<uint64_t> create_trial(const Op& request) = 0;
  // Returns the id of the next trial; all smaller ids exist.
  virtual uint64_t next_id() const = 0;
  bool knows_trial(uint64_t id) const { return id < next_id(); }
  // The same event is handled again because its strategy was lost, so its earlier requests are void.
  virtual void begin_again() {}
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Handles an event and returns the ops. If it throws, only the destructor may follow.
  virtual std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) = 0;

  // A strategy that cannot save its state is restored by replaying its events.
  virtual bool can_save() const { return false; }
  virtual std::string save() { return {}; }
  virtual void restore(const Json& /*study*/, const std::string& /*state*/) {}
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_STRATEGY_H_
