// The interface between a study and what runs its trials: processes on this or other hosts, Slurm, or a simulation.
//
// There are two runners: TrialRunner for processes, and SimulatedRunner. A new kind of cluster needs no new runner but
// an Engine (runner/engine.h), which TrialRunner drives.
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
#include "outputs/as_asked.h"

namespace dsat::host {

// A trial that is ready to run.
struct TrialSpec {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Json config;                  // merged and complete; `autotuning` has only the user's keys
  bool model_info = false;      // a model-information run of the protocol, not a measured run
  std::string identity{};       // identifies the configuration and the kind of run
  uint32_t earlier_runs = 0;    // trials with this identity before this one
  bool has_train_batch = true;  // its file gives train_batch_size; false: DeepSpeed computes it
  int further_steps = 0;        // steps to train after the profile window's usual end; the window ends later
};

struct TrialStart {
  uint64_t id = 0;
  uint32_t attempt = 1;
  std::vector<std::string> slots;
  std::string started_at;  // RFC 3339
};

// Sources of a peak, the best first.
inline constexpr const char* kPeakOfMetrics = "metrics";  // the result file's peak_memory
inline constexpr const char* kPeakOfProbe = "probe";      // the device allocator's peak
inline constexpr const char* kPeakOfProcess = "process";  // the peak of a process without device
inline constexpr const char* kPeakOfLog = "log";          // DeepSpeed's MaxMemAllocated of rank 0

// A port that another program had: the trial's MASTER_PORT, another port, or a port that no message names.
enum class TakenPort { none, given, chosen, unnamed };

// The facts of a run's end for which the trial's record has no place.
struct EndDetails {
  std::string last_line;              // last non-empty line of stderr; equal failures have equal lines
  std::vector<std::string> tail;      // last lines of stderr, to be shown
  std::vector<std::string> warnings;  // for example: completed, but with exit status 1
  std::vector<std::string> left_out;  // metrics of the result file whose value cannot be used
  std::optional<uint64_t> device_memory_bytes;
  std::optional<int64_t> world_size;
  // Versions of DeepSpeed, torch and the accelerator's driver, if the memory probe saw them.
  std::string engine_version, torch_version, driver_version;
  bool ran_short = false;              // completed, but printed that memory ran out
  bool of_host = false;                // out of the machine's memory, where devices have their own
  bool from_checkpoint = false;        // failed because it resumed from a checkpoint
  std::optional<Deviation> deviation;  // failed because it did not run its configuration; it would fail again
  std::string inputs;                  // shapes that DeepSpeed's engine was fed, if they show its batch
  std::string checkpoint_outside;      // folder outside the trial's, with its checkpoint; empty: none
  int engines = 0;                     // engines that DeepSpeed made in rank 0; 0: unknown
  uint64_t step = 0;                   // last profiled step
  int exit_code = -1, term_signal = 0;
};

// The end of a run of a trial.
struct TrialEnd : EndDetails {
  uint64_t id = 0;
  uint32_t attempt = 1;
  Outcome outcome = Outcome::failed;
  std::string reason;  // one line; may be empty
  Json metrics;        // canonical: DeepSpeed's names, fixed units; or the figures of a model-information run
  Curve curve;         // of a completed measured run
  std::optional<uint64_t> peak_bytes;
  std::string peak_source;  // source of peak_bytes; empty: there is no peak
  // For a trial that ran out of memory: a lower bound of its peak (oom_numbers.h).
  std::optional<uint64_t> peak_above_bytes;
  uint64_t allocator_retries = 0;          // how often the allocator had to empty its cache; 0: never, or unknown
  bool infrastructure = false;             // for example: its port was taken; runs again, not counted
  TakenPort taken_port = TakenPort::none;  // the port that made it fail
  std::string ended_at;                    // RFC 3339
  std::string started_at;                  // only of a recovered trial whose end a host saw
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Returns whether there is room now for trials with all of these configurations together. Trials may differ in size.
  virtual bool has_room_for(const std::vector<const Json*>& configs) const = 0;

  // Returns whether the processes of some trial could not be ended. They may hold slots until the study ends.
  virtual bool has_abandoned() const { return false; }

  // Starts a trial; needs room. A trial that cannot run is reported through on_ended. Throws dsat::Error if the machine
  // fails; then nothing was started.
  virtual void start(const TrialSpec& spec) = 0;

  // The trial that just ended will run again, on other slots than those where it failed, if possible.
  virtual void run_elsewhere(uint64_t /*id*/) {}

  // A trial that was to run again has ended without another run.
  virtual void will_not_run(const TrialEnd& /*end*/) {}

  // Ends a running trial: TERM, grace, KILL (at_once: KILL). Then calls on_ended with Outcome::stopped, unless the
  // trial had ended otherwise.
  virtual void stop(uint64_t id, bool at_once) = 0;

  // After a crash: returns the end of a trial that ran then. nullopt: nothing usable is left, so run it again.
  virtual std::optional<TrialEnd> find_end(const TrialSpec& spec) = 0;

  // After find_end() returned nullopt: returns whether the trial still runs, where trials outlive their host. If true,
  // on_ended follows.
  virtual bool adopt(const TrialSpec& /*spec*/) { return false; }

  // After adopt() returned false: returns when the interrupted run last wrote something (RFC 3339). Empty: unknown.
  virtual std::string last_written_at(const TrialSpec& /*spec*/) { return {}; }

  // How long the study's decisions may wait to be written to the journal. Zero: each start has effects outside, so it
  // is written first.
  virtual std::chrono::milliseconds commit_delay() const { return {}; }

  std::function<void(const TrialStart&)> on_started;
  std::function<void(const TrialEnd&)> on_ended;
  std::function<void(const std::string&)> on_notice;   // one line for people
  std::function<void(const std::string&)> on_closing;  // no trial can start any more; the study is to be interrupted
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_RUNNER_H_
