// Trials as processes of this machine, each below a dsat-launch of its own.
//
// on_ended comes when no process of the trial is left, and only then are its slots free again. Threading: control
// thread only. Ownership: destroying the engine kills what still runs and waits for it.
#ifndef DSAT_HOST_RUNNER_LOCAL_ENGINE_H_
#define DSAT_HOST_RUNNER_LOCAL_ENGINE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "runner/engine.h"

namespace dsat::host {

class LocalEngine : public Engine {
 public:
  // `launcher`: dsat-launch; absolute. `max_slots`: of all trials together; nullopt: no such limit.
  LocalEngine(Loop& loop, std::filesystem::path launcher, const std::vector<Slot>& slots, std::optional<int> max_slots);
  ~LocalEngine() override;

  bool has_room_for(const std::vector<TrialShape>& shapes) const override;
  std::optional<std::vector<Slot>> take(const TrialShape& shape) override { return slots_.take(shape); }
  void give_back(const std::vector<Slot>& slots) override { slots_.give_back(slots); }
  void launch(const Launch& launch) override;
  void stop(uint64_t id, bool at_once) override;
  bool has_ended(uint64_t id) const override;

 private:
  struct Running {
    std::unique_ptr<Subprocess> process;
    std::optional<uint64_t> oom_kills_before;
    uint64_t start_timer = 0;
  };
  void handle_exit(uint64_t id, const ExitStatus& exit);

  Loop& loop_;
  std::filesystem::path launcher_;
  SlotPool slots_;
  std::map<uint64_t, Running> running_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_LOCAL_ENGINE_H_
