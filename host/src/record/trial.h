// A trial in the study: its record, and what only the study needs.
// Threading: plain values, used on the control thread. Errors: read_end throws for a damaged text.
#ifndef DSAT_HOST_RECORD_TRIAL_H_
#define DSAT_HOST_RECORD_TRIAL_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "dsat/host/record.h"
#include "runner/runner.h"

namespace dsat::host {

// The phases of a study, in order. Plugins run two of them, the host the others (finals/).
enum class Phase {
  profiler,
  baseline,  // the user's own configuration
  searcher,
  finals,        // the best few again, to find out which is the best
  verification,  // the best trains for longer
  twin,          // the keys of the best at the user's own batch: do they learn the same?
  comparison,    // the best and the user's own again, to measure their difference
};

// The state of a trial from its request until its strategy knows the outcome. study/state/trial_table.h has the
// allowed changes.
enum class TrialState {
  waiting,    // for room to run or, for a duplicate, for the trial that it repeats
  running,    // its process was started
  stopping,   // its process was asked to end; the journal has "running"
  ended,      // the outcome is known, but not to the strategy
  delivered,  // the strategy knows it
};

struct Trial {
  TrialRecord record;
  Phase phase = Phase::searcher;
  TrialState state = TrialState::waiting;
  bool model_info = false;        // a model-information run of the protocol
  std::string identity;           // of the merged configuration and the kind of run
  uint32_t earlier_runs = 0;      // earlier trials of the same identity that cost a run
  std::optional<EndDetails> end;  // of its last run, which has ended
  // false: a raised limit or a repair took its request back. This is not in the journal. A later request for the same
  // configuration becomes a duplicate, which is asked for.
  bool is_asked_for = true;

  uint64_t id() const { return record.id; }
  // Whether it takes a place in the queue and counts against the trial limit; duplicates and refused configurations do
  // not.
  bool costs_a_run() const { return !record.duplicate_of && record.outcome != Outcome::invalid_config; }
  // Did the machine's memory run out, and not a device's? Then nothing is known of what fits a device: more ranks take
  // more of the machine.
  bool lacked_host_memory() const { return record.outcome == Outcome::out_of_memory && end && end->of_host; }
  // Whether its result answers later requests of the same configuration; a stopped or lost trial measured nothing.
  bool can_answer() const {
    return costs_a_run() && record.outcome != Outcome::stopped && record.outcome != Outcome::lost;
  }
};

// Returns the time of its latest change; nullopt: there was none.
std::optional<std::chrono::system_clock::time_point> latest_moment(const TrialRecord& record);

// Records the end of the trial's last run.
void take_end(Trial& trial, TrialEnd end);

// Returns the journal's form of a trial's end: the details, and what the record has of it.
Json end_to_json(const Trial& trial);
// Reads the details, and the members of the record that have no column of their own; the outcome is read before. Throws
// if the text is damaged.
void read_end(const Json& json, Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_TRIAL_H_
