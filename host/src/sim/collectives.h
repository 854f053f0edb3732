// Computes the time of collective operations by the alpha-beta model over rings.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH" (2005): over N
// ranks a ring gathers or scatters n bytes in (N - 1) alpha + (N - 1) / N n / beta; an all-reduce is both; a broadcast
// as scatter and gather costs 2 (N - 1) / N n / beta. Between nodes, beta is the bandwidth of all cards of a node
// together, since the ring enters and leaves a node once (NCCL). Alpha counts the hops inside one node and the hops
// between nodes, as in a hierarchical ring.
// Threading: pure functions. Units: seconds, bytes.
#ifndef DSAT_HOST_SIM_COLLECTIVES_H_
#define DSAT_HOST_SIM_COLLECTIVES_H_

#include "sim/scenario.h"

namespace dsat::host::sim {

// The devices of the operation: `ranks` devices, neighbours `stride` apart.
class Ring {
 public:
  Ring(const Scenario& scenario, int64_t ranks, int64_t stride);

  // `bytes` is the size of the whole buffer, which `calls` operations share.
  double gather(double bytes, double calls) const;      // all-gather, or reduce-scatter
  double all_reduce(double bytes, double calls) const;  // a reduce-scatter and an all-gather
  double broadcasts(double bytes, double calls) const;  // every rank in turn sends its part to all

 private:
  double ranks_, hop_seconds_, bandwidth_, overhead_seconds_;
};

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_COLLECTIVES_H_
