// Runs trials as steps of the allocation in which this program runs: srun, many at a time, several per node.
//
// Slurm lets the steps share their nodes (--overlap), and dsat assigns the slots; a trial sees the GPUs of its slots. A
// refused step is tried again. A node that fails is retired, and the study continues on the others. No trial starts
// that could not end before the allocation.
// Threading, ownership: as RemoteEngine.
#ifndef DSAT_HOST_SLURM_PILOT_ENGINE_H_
#define DSAT_HOST_SLURM_PILOT_ENGINE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/remote_engine.h"
#include "slurm/allocation.h"
#include "slurm/job_request.h"

namespace dsat::host {

struct PilotEngineOptions : RemoteEngineOptions {
  JobRequest request{};
  Allocation allocation{};
  std::string token{};  // of the study; its steps' names begin with it
};

class PilotEngine : public RemoteEngine {
 public:
  PilotEngine(Loop& loop, PilotEngineOptions options);
  ~PilotEngine() override;

  bool has_room_for(const std::vector<TrialShape>& shapes) const override;
  void give_back(const std::vector<Slot>& slots) override;
  std::optional<std::vector<Slot>> take(const TrialShape& shape) override;
  void prepare(TrialContext& context) const override;

 protected:
  Argv client_command(const Launch& launch) const override;
  void write_script(const Launch& launch) const override;
  bool runs_tasks(const Launch& launch) const override;
  Argv signal_command(const Launch& launch, const ScriptNote& note, bool at_once) const override;
  std::optional<std::chrono::milliseconds> retry_after(const RemoteTrial& trial, EngineEnd& end) override;
  void explain(const RemoteTrial& trial, EngineEnd& end) override;

 private:
  std::vector<const AllocationNode*> nodes_of(const Launch& launch) const;
  std::string words_of(const Launch& launch) const;
  bool close_if_allocation_is_over();
  bool retire_failed_nodes(const Launch& launch);
  bool is_short_of_time() const;
  void check_time();
  void set_time_check();

  PilotEngineOptions pilot_;
  std::map<std::string, Loop::Clock::time_point> begun_;  // by the trial's first slot
  std::chrono::milliseconds longest_trial_{};
  std::set<std::string> retired_;
  std::optional<Loop::Clock::time_point> end_;  // of the allocation
  mutable uint64_t time_timer_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_PILOT_ENGINE_H_
