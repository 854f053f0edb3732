// Runs trials as processes of this machine, each below its own dsat-launch.
//
// on_ended is called, and the slots are free, when no process of the trial is left. dsat-launch ensures that; if the
// trial has killed or stopped dsat-launch, this engine finds the processes itself (trial_processes.h). A trial that
// cannot be ended, because the kernel holds a process (state D), is abandoned: on_ended reports it, and its slots stay
// in use until the processes are gone. Threading: control thread only. Ownership: the destructor kills running trials
// and waits for them, up to a limit.
#ifndef DSAT_HOST_LOCAL_LOCAL_ENGINE_H_
#define DSAT_HOST_LOCAL_LOCAL_ENGINE_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "local/trial_processes.h"
#include "runner/background_commands.h"
#include "runner/engine.h"

namespace dsat::host {

struct LocalEngineTimes {
  std::chrono::milliseconds look{1000};          // between checks of a dsat-launch that may have been stopped
  std::chrono::milliseconds kill_grace{2000};    // from KILL by dsat-launch to KILL by this engine
  std::chrono::milliseconds abandon{10000};      // from KILL by this engine until the trial is abandoned
  std::chrono::milliseconds spawn_limit{60000};  // for a retry while the system has no process to spare
};

class LocalEngine : public Engine {
 public:
  // `launcher`: absolute path of dsat-launch. `max_slots`: limit for all trials together; nullopt: no limit.
  LocalEngine(Loop& loop, std::filesystem::path launcher, const std::vector<Slot>& slots, std::optional<int> max_slots,
              LocalEngineTimes times = LocalEngineTimes());
  ~LocalEngine() override;

  bool has_room_for(const std::vector<TrialShape>& shapes) const override;
  std::optional<std::vector<Slot>> take(const TrialShape& shape) override { return slots_.take(shape); }
  void give_back(const std::vector<Slot>& slots) override { slots_.give_back(slots); }
  bool withhold(const std::vector<Slot>& slots, const std::vector<TrialShape>& shapes) override {
    return slots_.withhold(slots, shapes);
  }
  void restore(const std::vector<Slot>& slots) override { slots_.restore(slots); }
  void hold(const std::vector<Slot>& slots) override { slots_.hold(slots); }
  void launch(const Launch& launch) override;
  void stop(uint64_t id, bool at_once) override;
  bool has_ended(uint64_t id) const override;

 private:
  using Time = Loop::Clock::time_point;
  struct LocalTrial {
    std::unique_ptr<Subprocess> process;  // nullptr: not started yet, or ended while other processes are left
    TrialProcesses processes;
    Launch launch;
    std::optional<uint64_t> oom_kills_before;
    std::optional<ExitStatus> exit;  // of dsat-launch
    std::optional<Time> killed_at;   // by this engine
    bool killing = false;            // dsat-launch is killing it
    uint64_t timer = 0;
  };
  void spawn(const Launch& launch, Time give_up_at);
  void try_later(const Launch& launch, const SpawnBusy& why, Time give_up_at);
  void give_up(uint64_t id, const std::string& problem);
  void watch(uint64_t id);
  void end_elsewhere(const LocalTrial& trial);
  void end_by_force(uint64_t id);
  void handle_exit(uint64_t id, const ExitStatus& exit);
  void finish(uint64_t id, std::string abandoned);
  void await_abandoned(uint64_t id);

  Loop& loop_;
  std::filesystem::path launcher_;
  SlotPool slots_;
  LocalEngineTimes times_;
  Subreaper subreaper_;
  BackgroundCommands background_{loop_};
  std::map<uint64_t, LocalTrial> running_;
  std::map<uint64_t, LocalTrial> abandoned_;  // by its own number, because the trial may run again
  uint64_t next_abandoned_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_LOCAL_LOCAL_ENGINE_H_
