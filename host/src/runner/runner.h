// The interface between a study and whatever runs its trials: processes on this or other hosts, Slurm, or a simulation.
//
// Use: there are two runners, TrialRunner for processes and SimulatedRunner. A new cluster needs no further runner: it
//   implements Engine (runner/engine.h), which TrialRunner drives.
// Threading: control thread only. on_started and on_ended are called from the loop, never from inside start or stop.
#ifndef DSAT_HOST_RUNNER_RUNNER_H_
#define DSAT_HOST_RUNNER_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"

namespace dsat::host {

// A trial that is ready to run.
struct TrialSpec {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Json config;                // merged and complete; `autotuning` holds the user's own keys only
  bool model_info = false;    // the protocol's model-information run instead of a measured one
  std::string identity{};     // of the configuration and the kind of run
  uint32_t earlier_runs = 0;  // trials of this identity before this one
  int further_steps = 0;      // that it trains beyond the profile window's end; the window ends later
};

struct TrialStart {
  uint64_t id = 0;
  uint32_t attempt = 1;
  std::vector<std::string> slots;
  std::string started_at;  // RFC 3339
};

// Where a peak comes from, in the order of preference.
inline constexpr const char* kPeakOfMetrics = "metrics";  // the result file's peak_memory
inline constexpr const char* kPeakOfProbe = "probe";      // the allocator's, of a device
inline constexpr const char* kPeakOfProcess = "process";  // the probe's, of a process without a device
inline constexpr const char* kPeakOfLog = "log";          // DeepSpeed's MaxMemAllocated: of rank 0

// A port that somebody else had: the one that the trial was given, another one, or one that no message names.
enum class TakenPort { none, given, chosen, unnamed };

struct TrialEnd {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Outcome outcome = Outcome::failed;
  std::string reason;                 // one line; empty: there is none
  std::string last_line;              // last non-empty line of stderr: how identical failures are recognised
  std::vector<std::string> tail;      // last lines of stderr, for people
  std::vector<std::string> warnings;  // e.g. completed, but exit status 1
  Json metrics;  // canonical: DeepSpeed's names and fixed units; model info for a model-information run
  std::vector<std::string> left_out;  // metrics that its result file has, but with a figure that cannot be used
  std::optional<uint64_t> peak_bytes, device_memory_bytes;
  std::string peak_source;  // of peak_bytes; empty: there is no peak
  // For a trial that ran out of memory: its peak would have been larger than this (oom_numbers.h).
  std::optional<uint64_t> peak_above_bytes;
  uint64_t allocator_retries = 0;  // how often the allocator had to give its cache back; 0: never, or unknown
  std::optional<int64_t> world_size;
  std::string engine_version, torch_version;  // of DeepSpeed and torch, where the memory probe saw them
  // What its log and the probe say of the script.
  bool from_checkpoint = false;    // it failed because it goes on from a checkpoint
  bool has_short_batches = false;  // it failed because its data set is too small: it would each time
  std::string checkpoint_outside;  // the folder, not below its own, in which it saved one; empty: none
  int engines = 0;                 // that DeepSpeed made in its rank 0; 0: unknown
  uint64_t step = 0;               // last profiled step
  int exit_code = -1, term_signal = 0;
  bool infrastructure = false;             // e.g. a port taken by someone else: to be run again, not counted
  TakenPort taken_port = TakenPort::none;  // why it failed, if it did so for a port
  std::string ended_at;                    // RFC 3339
  std::string started_at;                  // of a recovered one, where a host saw its end
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Is there room now for all of these trials together, by their configurations? Trials may differ in size.
  virtual bool has_room_for(const std::vector<const Json*>& configs) const = 0;

  // Has there been a trial whose processes could not be ended? They may hold slots for as long as the study runs.
  virtual bool has_abandoned() const { return false; }

  // Starts a trial; needs room. A trial that cannot run is reported through on_ended. Throws dsat::Error when the
  // machine fails; then nothing was started.
  virtual void start(const TrialSpec& spec) = 0;

  // The trial that has just ended runs again: not where it failed, if there is any other place.
  virtual void run_elsewhere(uint64_t /*id*/) {}

  // A trial that was to run again has ended without another run.
  virtual void will_not_run(const TrialEnd& /*end*/) {}

  // Ends a running trial: TERM, grace, KILL (at_once: KILL). Its on_ended follows, with Outcome::stopped unless it had
  // ended otherwise.
  virtual void stop(uint64_t id, bool at_once) = 0;

  // After a crash: what a trial that ran then has left behind. nullopt: nothing usable, run it again.
  virtual std::optional<TrialEnd> recover(const TrialSpec& spec) = 0;

  // After recover() found nothing: does the trial still run, where trials outlive their host? True: its on_ended
  // follows.
  virtual bool adopt(const TrialSpec& /*spec*/) { return false; }

  // After adopt() gave false: when the run that a crash cut off last wrote something (RFC 3339). Empty: unknown.
  virtual std::string last_written_at(const TrialSpec& /*spec*/) { return {}; }

  // How long the study's decisions may stay out of the journal. Zero: a start changes the world, so the journal is
  // first.
  virtual std::chrono::milliseconds commit_delay() const { return {}; }

  std::function<void(const TrialStart&)> on_started;
  std::function<void(const TrialEnd&)> on_ended;
  std::function<void(const std::string&)> on_notice;   // for people, one line
  std::function<void(const std::string&)> on_closing;  // no trial can be begun any more: the study is to be interrupted
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_RUNNER_H_
