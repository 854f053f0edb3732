// Answers trials from a surface in virtual time. No process starts and no file is written.
// Threading: control thread only. Units: slots are devices; a trial takes slots_per_trial neighbouring slots. Errors:
// start() throws dsat::Error if the surface fails.
#ifndef DSAT_HOST_SIM_SIMULATED_RUNNER_H_
#define DSAT_HOST_SIM_SIMULATED_RUNNER_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "dsat/host/settings.h"
#include "dsat/host/simulation.h"
#include "runner/runner.h"

namespace dsat::host {

struct SimulatedRunnerOptions : TrialTimeouts, TrialMeasurement {
  std::shared_ptr<const Surface> surface;
  uint64_t seed = 0;
  int slots = 1, slots_per_trial = 1;
  std::optional<int> max_slots{};
};

class SimulatedRunner : public Runner {
 public:
  SimulatedRunner(Loop& loop, SimulatedRunnerOptions options);
  ~SimulatedRunner() override;

  bool has_room_for(const std::vector<const Json*>& configs) const override {
    return configs.size() <= free_groups_.size();
  }
  void start(const TrialSpec& spec) override;
  void stop(uint64_t id, bool at_once) override;
  // A simulated trial leaves nothing after a crash.
  std::optional<TrialEnd> find_end(const TrialSpec&) override { return std::nullopt; }
  // A simulation has no effects outside the study.
  std::chrono::milliseconds commit_delay() const override { return std::chrono::seconds(1); }

 private:
  struct StartedTrial {
    TrialEnd end;
    int group = 0;
    uint64_t timer = 0;
  };
  TrialEnd end_of(const TrialSpec& spec, SimulatedRun run, Loop::Clock::duration& length) const;
  void report_start(uint64_t id, uint32_t attempt);
  void report_end(uint64_t id);
  std::string slots_of(int group) const;

  Loop& loop_;
  SimulatedRunnerOptions options_;
  std::set<int> free_groups_;  // group k has slots_per_trial slots from k x slots_per_trial on
  std::map<uint64_t, StartedTrial> running_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SIM_SIMULATED_RUNNER_H_
