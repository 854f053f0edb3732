// Answers trials from a surface, in the loop's virtual time. Nothing is started and nothing written.
//
// Threading: control thread only. Units: slots are devices; a trial takes slots_per_trial neighbours. Errors: start()
// throws dsat::Error when the surface fails.
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
  // What a simulated trial would have left is gone with its process.
  std::optional<TrialEnd> recover(const TrialSpec&) override { return std::nullopt; }
  // Nothing outside the study depends on what was decided.
  std::chrono::milliseconds commit_delay() const override { return std::chrono::seconds(1); }

 private:
  struct Running {
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
  std::set<int> free_groups_;  // of neighbouring slots; group k: slots k x slots_per_trial and the following ones
  std::map<uint64_t, Running> running_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SIM_SIMULATED_RUNNER_H_
