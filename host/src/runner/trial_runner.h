// Runs trials as processes, wherever an engine starts them: on this machine, on others, in a cluster's queue.
//
// Each trial has its own folder, slots and port; docs/trial.md describes what a trial gets and how its outcome is
// decided. Threading: control thread only. Ownership: the runner owns its engine, whose destructor ends running trials.
// Errors: start() throws dsat::Error of the machine.
#ifndef DSAT_HOST_RUNNER_TRIAL_RUNNER_H_
#define DSAT_HOST_RUNNER_TRIAL_RUNNER_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "command/command_template.h"
#include "dsat/host/environment.h"
#include "dsat/host/settings.h"
#include "runner/engine.h"
#include "runner/ports.h"
#include "runner/runner.h"
#include "runner/slot_watch.h"
#include "runner/trial_files.h"
#include "slots/slots.h"

namespace dsat::host {

struct TrialRunnerOptions : TrialSetup, TrialTimeouts, TrialMeasurement {
  std::filesystem::path run_dir;  // absolute
  CommandTemplate command;
  Environment environment{};
  SlotPlan slots{};
  std::filesystem::path python_package{};                          // the folder of the package dsat; empty: unknown
  std::filesystem::path probe{};                                   // the memory probe's folder; empty: none
  std::chrono::milliseconds term_grace{std::chrono::seconds(10)};  // between TERM and KILL
  // A trial that has written its result, or printed that memory ran out, gets at most this instead of
  // no_progress_timeout.
  std::chrono::milliseconds patience_after_result{std::chrono::minutes(1)};
};

class TrialRunner : public Runner {
 public:
  TrialRunner(Loop& loop, TrialRunnerOptions options, std::unique_ptr<Engine> engine);
  ~TrialRunner() override;

  bool has_room_for(const std::vector<const Json*>& configs) const override;
  bool has_abandoned() const override { return has_abandoned_; }
  void start(const TrialSpec& spec) override;
  void run_elsewhere(uint64_t id) override;
  void will_not_run(const TrialEnd& end) override { watch_slots(end, {}, false); }
  void stop(uint64_t id, bool at_once) override;
  std::optional<TrialEnd> find_end(const TrialSpec& spec) override;
  bool adopt(const TrialSpec& spec) override;
  std::string last_written_at(const TrialSpec& spec) override;

 private:
  struct LiveTrial {
    RunFacts facts;
    std::vector<Slot> slots;
    uint16_t port = 0;
    bool start_is_known = false, start_reported = false;
    bool ending = false;           // it is being ended
    bool is_silence_read = false;  // its logs were read since its last progress
    bool ran_short = false;        // they report that memory ran out
    uint64_t progress = 0;
    uint64_t output_bytes = 0;  // that were looked at
    Loop::Clock::time_point last_progress;
    std::vector<uint64_t> timers;
  };

  void launch(const TrialSpec& spec, LiveTrial& trial);
  Launch make_launch(const TrialSpec& spec, const LiveTrial& trial) const;
  std::filesystem::path cwd_of(const std::filesystem::path& folder) const;
  std::filesystem::path make_cwd(const std::filesystem::path& folder) const;
  Environment prepare_files(const TrialSpec& spec, const LiveTrial& trial, const Argv& argv,
                            const std::filesystem::path& cwd, bool has_hostfile) const;
  void release(const LiveTrial& trial);
  void handle_start(uint64_t id);
  void handle_waiting(uint64_t id);
  void cancel_timers(LiveTrial& trial);
  void report_start(LiveTrial& trial);
  void watch_limits(uint64_t id, LiveTrial& trial);
  void look_for_progress(uint64_t id);
  void look_at_output(uint64_t id);
  std::chrono::milliseconds patience_with(const LiveTrial& trial) const;
  void time_out(uint64_t id, std::string reason, bool at_once = false);
  void end_processes(uint64_t id, LiveTrial& trial, bool at_once);
  void handle_end(uint64_t id, const EngineEnd& ended);
  void watch_port(const TrialEnd& end, const std::vector<Slot>& slots);
  void watch_slots(const TrialEnd& end, const std::vector<Slot>& slots, bool host_failed);
  void report_reuse(const std::vector<Slot>& slots);
  RunFacts facts_of(const TrialSpec& spec) const;

  Loop& loop_;
  TrialRunnerOptions options_;
  PortPool ports_;
  std::map<uint64_t, LiveTrial> running_;
  bool has_abandoned_ = false;
  bool one_at_a_time_ = false;  // trials had the same port, which their script chooses
  int unnamed_ports_ = 0;       // messages about a taken port without its number, while other trials ran
  SlotWatch slot_watch_;
  std::vector<Slot> broken_;  // broken slots that were reported
  std::unique_ptr<Engine> engine_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_RUNNER_H_
