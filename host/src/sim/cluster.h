// A surface over a scenario: the analytic model's answer, with noise and out-of-memory.
#ifndef DSAT_HOST_SIM_CLUSTER_H_
#define DSAT_HOST_SIM_CLUSTER_H_

#include "dsat/host/simulation.h"
#include "sim/scenario.h"

namespace dsat::host::sim {

// Threading: immutable; studies may share it.
class ClusterSurface : public Surface {
 public:
  explicit ClusterSurface(Scenario scenario) : scenario_(std::move(scenario)) {}
  SimulatedRun run(const SimulatedTrial& trial) const override;

 private:
  SimulatedRun out_of_memory(double wanted_bytes) const;

  Scenario scenario_;
};

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_CLUSTER_H_
