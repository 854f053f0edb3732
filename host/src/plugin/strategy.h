// One searcher or profiler at work, as the study sees it: events in, the ops it asks for out.
//
// Purpose: Strategy is what a study works with. A plugin is one (plugin_strategy.h), in this process or in one of its
//   own (isolated_strategy.h); the host has some of its own (finals/host_strategy.h).
// Threading: control thread. Errors: dsat::Error, DSAT_INTERNAL.
#ifndef DSAT_HOST_PLUGIN_STRATEGY_H_
#define DSAT_HOST_PLUGIN_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

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
std::string call_of(const StrategyEvent& event);  // "on_result of trial 3"

// Answers what a strategy asks for while it handles one event. What it decides takes effect only when the event is
// accepted.
class RequestAnswers {
 public:
  virtual ~RequestAnswers() = default;
  // The new trial's id, or nullopt at the trial limit.
  virtual std::optional<uint64_t> create_trial(const Op& request) = 0;
  // The id of the next trial: those below it were given out.
  virtual uint64_t next_id() const = 0;
  bool knows_trial(uint64_t id) const { return id < next_id(); }
  // The event is handed over once more, since its strategy was lost in it: what was asked for is void.
  virtual void begin_again() {}
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

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_STRATEGY_H_
