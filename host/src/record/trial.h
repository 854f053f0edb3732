// A trial as the study keeps it: its record, and what only the study needs to know.
//
// Threading: plain values, used on the control thread. Errors: trial_end_from_json throws what a damaged text does.
#ifndef DSAT_HOST_RECORD_TRIAL_H_
#define DSAT_HOST_RECORD_TRIAL_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "dsat/host/record.h"
#include "runner/runner.h"

namespace dsat::host {

// The phases of a study, in their order. Two are a plugin's, the others the host's own (finals/).
enum class Phase {
  profiler,
  baseline,  // the user's own configuration
  searcher,
  finals,        // the best few again, to tell which of them is the best
  verification,  // the best trains further
  comparison,    // the best and the user's own again, to tell how far apart they are
};

// Where a trial stands between its request and the moment when its strategy knows its outcome. study/trial_table.h has
// the changes that are allowed.
enum class TrialState {
  waiting,    // for room to run, or (a duplicate) for the trial that it repeats
  running,    // its process was started
  stopping,   // its process was asked to end; the journal calls it running
  ended,      // the outcome is known, the strategy does not know it yet
  delivered,  // the strategy knows it
};

struct Trial {
  TrialRecord record;
  Phase phase = Phase::searcher;
  TrialState state = TrialState::waiting;
  bool model_info = false;    // the protocol's model-information run
  std::string identity;       // of the merged configuration, and of the kind of run
  uint32_t earlier_runs = 0;  // trials of the same identity before it that cost a run
  std::optional<TrialEnd> end;
  // false: a raised limit or a repair took its request back. Not in the journal. A later request for the same
  // configuration is a duplicate, which is asked for.
  bool is_asked_for = true;

  uint64_t id() const { return record.id; }
  // Takes a place in the queue and counts against the trial limit; duplicates and refused configurations do not.
  bool costs_a_run() const { return !record.duplicate_of && record.outcome != Outcome::invalid_config; }
  // Its result holds for later requests of the same configuration; a stopped or lost trial measured nothing.
  bool can_answer() const {
    return costs_a_run() && record.outcome != Outcome::stopped && record.outcome != Outcome::lost;
  }
};

// When something last happened to it. nullopt: nothing has.
std::optional<std::chrono::system_clock::time_point> latest_moment(const TrialRecord& record);

// What a runner reports of the trial's memory beside its peak.
void take_memory(TrialRecord& record, const TrialEnd& end);

Json to_json(const TrialEnd& end);
TrialEnd trial_end_from_json(const Json& json);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_TRIAL_H_
