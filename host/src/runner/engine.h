// Starts, watches and stops the processes of trials. Runners differ only in their engine.
//
// TrialRunner does the rest for every engine: a trial's folder and files, command, variables, port, time limits and
// outcome. docs/runners.md says how to write another engine.
// Threading: control thread only. The callbacks come from the loop, never from inside launch or stop.
// Ownership: the destructor ends the trials that still run. Errors: launch throws dsat::Error if the machine fails;
// then nothing was started.
#ifndef DSAT_HOST_RUNNER_ENGINE_H_
#define DSAT_HOST_RUNNER_ENGINE_H_

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "command/command_template.h"
#include "dsat/host/environment.h"
#include "dsat/host/record.h"
#include "slots/slot_pool.h"

namespace dsat::host {

// Makes dsat-launch kill its tree now. SIGKILL to dsat-launch would leave the tree without a guard.
inline constexpr int kKillTree = SIGUSR1;

// A trial whose folder and files are ready.
struct Launch {
  uint64_t id = 0;
  uint32_t attempt = 1;
  std::filesystem::path folder, cwd;  // absolute
  Argv argv;
  Environment environment;  // all variables of the trial
  Environment added;        // the variables that are not in the study's environment
  std::vector<Slot> slots;  // as the engine gave them
  Argv end_command{};       // ends the trial if SIGTERM to `argv` would end others too (pdsh_end.h); empty: SIGTERM
};

// The engine's knowledge about a trial without a result, for example: the node failed, or the job was preempted.
struct Verdict {
  Outcome outcome = Outcome::failed;
  std::string reason;           // one line
  bool infrastructure = false;  // not the trial's fault: it runs again and is not counted
};

// The end of a trial's processes.
struct EngineEnd {
  ExitStatus exit;
  std::optional<Verdict> verdict{};  // counts only if the trial's files and output do not show more
  bool kernel_oom_kills = false;     // the kernel killed a process for lack of memory meanwhile
  std::string not_started;           // why the machine could not start it now; empty: it was started
  // The trial's processes that cannot be ended, as text; empty: none. The engine gives their slots back later.
  std::string abandoned;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Returns whether there is room now for all of these trials together.
  virtual bool has_room_for(const std::vector<TrialShape>& shapes) const = 0;

  // Reserves slots for a trial; nullopt: there is no room. The caller gives them back after the trial's end.
  virtual std::optional<std::vector<Slot>> take(const TrialShape& shape) = 0;
  virtual void give_back(const std::vector<Slot>& slots) = 0;
  // Returns whether slots name the hosts where trials run. If a scheduler places the trials, slots only count.
  virtual bool slots_name_hosts() const { return true; }

  // Keeps these slots from all trials until restore(). Returns false if the engine cannot do this, if a trial has one
  // of the slots, or if trials of one of these shapes could then never run.
  virtual bool withhold(const std::vector<Slot>& /*slots*/, const std::vector<TrialShape>& /*shapes*/) { return false; }
  virtual void restore(const std::vector<Slot>& /*slots*/) {}
  // The trial on these slots has ended with EngineEnd::abandoned. The slots may never come back, so withheld slots may
  // be needed.
  virtual void hold(const std::vector<Slot>& /*slots*/) {}

  // Adds to `context` how the command sees its slots, which are as take() gave them.
  virtual void prepare(TrialContext& /*context*/) const {}

  // Starts a trial. Then calls on_running, at once or when the trial leaves a queue, and then on_ended exactly once.
  virtual void launch(const Launch& launch) = 0;

  // Ends a launched trial: with time to write its files, or at once.
  virtual void stop(uint64_t id, bool at_once) = 0;

  // Returns whether the trial has ended although on_ended was not called yet.
  virtual bool has_ended(uint64_t /*id*/) const { return false; }

  // After a crash of the host: returns true if a trial of the earlier host still runs, waits, or has an end to report.
  // Then the trial belongs to this engine as if launched here. If false, the trial starts again.
  virtual bool adopt(const Launch& /*launch*/) { return false; }

  std::function<void(uint64_t id)> on_running;
  std::function<void(uint64_t id)> on_waiting;  // the trial no longer runs, and will run again by itself
  std::function<void(uint64_t id, const EngineEnd&)> on_ended;
  std::function<void(const std::string&)> on_notice;   // a notice for people
  std::function<void(const std::string&)> on_closing;  // no trial can start any more; the study is to be interrupted
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_ENGINE_H_
