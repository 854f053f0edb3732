// Runs trials as processes of this machine.
//
// Each has a folder, slots, a port and a session of its own, and dsat-launch as its root: on_ended comes when no
// process of the trial is left, and only then are its slots free again. docs/trial.md describes what a trial gets and
// how its end is read. Threading: control thread only. Ownership: destroying the runner kills what still runs and waits
// for it. Errors: start() throws dsat::Error of the machine.
#ifndef DSAT_HOST_RUNNER_LOCAL_RUNNER_H_
#define DSAT_HOST_RUNNER_LOCAL_RUNNER_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "command/command_template.h"
#include "dsat/host/environment.h"
#include "dsat/host/settings.h"
#include "runner/ports.h"
#include "runner/runner.h"
#include "runner/trial_files.h"
#include "slots/slots.h"

namespace dsat::host {

struct LocalRunnerOptions : TrialSetup, TrialTimeouts, TrialMeasurement {
  std::filesystem::path run_dir;  // absolute
  CommandTemplate command;
  Environment environment{};
  SlotPlan slots{};
  std::optional<int> max_slots{};
  std::filesystem::path launcher{};                                // dsat-launch; absolute
  std::filesystem::path probe{};                                   // the memory probe's folder; empty: none
  std::chrono::milliseconds term_grace{std::chrono::seconds(10)};  // between TERM and KILL
};

class LocalRunner : public Runner {
 public:
  LocalRunner(Loop& loop, LocalRunnerOptions options);
  ~LocalRunner() override;

  bool has_room_for(const std::vector<const Json*>& configs) const override;
  void start(const TrialSpec& spec) override;
  void stop(uint64_t id, bool at_once) override;
  std::optional<TrialEnd> recover(const TrialSpec& spec) override;

 private:
  struct Running {
    RunFacts facts;
    std::vector<Slot> slots;
    uint16_t port = 0;
    std::unique_ptr<Subprocess> process;
    bool start_reported = false;
    bool ending = false;  // TERM was sent
    std::optional<uint64_t> oom_kills_before;
    uint64_t progress = 0;
    Loop::Clock::time_point last_progress;
    std::vector<uint64_t> timers;
  };

  void launch(const TrialSpec& spec, Running& trial);
  std::filesystem::path make_cwd(const std::filesystem::path& folder) const;
  Environment prepare_files(const TrialSpec& spec, const Running& trial, const Argv& argv,
                            const std::filesystem::path& cwd) const;
  void release(const Running& trial);
  void report_start(Running& trial);
  void watch_limits(uint64_t id, Running& trial);
  void look_for_progress(uint64_t id);
  void time_out(uint64_t id, std::string reason);
  void end_tree(uint64_t id, Running& trial, bool at_once);
  void handle_exit(uint64_t id, const ExitStatus& exit);
  RunFacts facts_of(const TrialSpec& spec) const;

  Loop& loop_;
  LocalRunnerOptions options_;
  SlotPool slots_;
  PortPool ports_;
  std::map<uint64_t, Running> running_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_LOCAL_RUNNER_H_
