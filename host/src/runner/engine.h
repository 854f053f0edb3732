// What starts, watches and stops the processes of trials: the part in which runners differ.
//
// TrialRunner does the rest for every engine: a trial's folder and files, its command, variables and port, the time
// limits, and the reading of its end. docs/runners.md says how a further engine is written.
// Threading: control thread only. The callbacks come from the loop, never from inside launch or stop.
// Ownership: destroying an engine ends what it still runs. Errors: launch throws dsat::Error when the machine fails;
//   then nothing was started.
#ifndef DSAT_HOST_RUNNER_ENGINE_H_
#define DSAT_HOST_RUNNER_ENGINE_H_

#include <signal.h>

#include <chrono>
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

// Makes dsat-launch kill everything now; SIGKILL to itself would leave the tree without its guard.
inline constexpr int kKillTree = SIGUSR1;

// A trial whose folder and files are ready.
struct Launch {
  uint64_t id = 0;
  uint32_t attempt = 1;
  std::filesystem::path folder, cwd;  // absolute
  Argv argv;
  Environment environment;  // all variables of the trial
  Environment added;        // of them, those that it does not share with the study
  std::vector<Slot> slots;  // that the engine gave it
  Argv end_command{};       // ends it gently, where TERM to `argv` would end others, too (pdsh_end.h); empty: TERM does
};

// What an engine knows of a trial that left no result: its node failed, its job was preempted.
struct Verdict {
  Outcome outcome = Outcome::failed;
  std::string reason;           // one line
  bool infrastructure = false;  // no fault of the trial's: it runs again and is not counted
};

// How a trial's processes ended.
struct EngineEnd {
  ExitStatus exit;
  std::optional<Verdict> verdict{};  // counts only where the trial's own files and output do not say more
  bool kernel_oom_kills = false;     // the kernel killed some process for want of memory while it ran
  std::string not_started;           // why the machine could not start it, though it may later; empty: it was started
  // Processes of it that cannot be ended, for people; empty: none is left. Its slots are the engine's to give back.
  std::string abandoned;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Is there room now for all of these together?
  virtual bool has_room_for(const std::vector<TrialShape>& shapes) const = 0;

  // Sets slots aside for a trial; nullopt: there is no room. They are given back after its end.
  virtual std::optional<std::vector<Slot>> take(const TrialShape& shape) = 0;
  virtual void give_back(const std::vector<Slot>& slots) = 0;
  // Do slots name the hosts where trials run? Where a scheduler places them, slots only count.
  virtual bool slots_name_hosts() const { return true; }

  // No trial gets these slots until they are restored. False: the engine cannot do it, a trial has one of them, or
  // trials of one of these shapes would then never have room.
  virtual bool withhold(const std::vector<Slot>& /*slots*/, const std::vector<TrialShape>& /*shapes*/) { return false; }
  virtual void restore(const std::vector<Slot>& /*slots*/) {}
  // The trial of these slots has ended with EngineEnd::abandoned: they may never come back, so what is withheld may be
  // needed.
  virtual void hold(const std::vector<Slot>& /*slots*/) {}

  // Tells the command how it sees its slots: `context` has them as take() gave them.
  virtual void prepare(TrialContext& /*context*/) const {}

  // Starts a trial. on_running follows, at once or when it leaves a queue, and then on_ended, exactly once.
  virtual void launch(const Launch& launch) = 0;

  // Ends a trial that was launched: gently, so that it can still write, or at once.
  virtual void stop(uint64_t id, bool at_once) = 0;

  // Has the trial ended, though on_ended is still to come?
  virtual bool has_ended(uint64_t /*id*/) const { return false; }

  // After a crash of the host: does this trial of an earlier one still run, or wait, or is its end still to be
  // reported? True: it is this engine's from now on, as if it had been launched here. False: it runs again from its
  // start.
  virtual bool take_up(const Launch& /*launch*/) { return false; }

  std::function<void(uint64_t id)> on_running;
  std::function<void(uint64_t id)> on_waiting;  // it does not run any more, and is to run again by itself
  std::function<void(uint64_t id, const EngineEnd&)> on_ended;
  std::function<void(const std::string&)> on_notice;   // for people
  std::function<void(const std::string&)> on_closing;  // no trial can be begun any more: the study is to be interrupted
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_ENGINE_H_
