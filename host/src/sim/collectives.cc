// Time is the latency of the hops, plus the overhead of each call, plus bytes divided by the slowest link's bandwidth.
#include "sim/collectives.h"

#include <algorithm>
#include <cmath>

namespace dsat::host::sim {

Ring::Ring(const Scenario& scenario, int64_t ranks, int64_t stride) : ranks_(static_cast<double>(ranks)) {
  const Cluster& c = scenario.cluster;
  const double in_node =
      std::clamp<double>(static_cast<double>(c.gpus_per_node) / static_cast<double>(stride), 1, ranks_);
  const double nodes = std::ceil(ranks_ / in_node);
  hop_seconds_ = ((in_node - 1) * c.intra_node_latency_us + (nodes - 1) * c.inter_node_latency_us) * 1e-6;
  // The rings of several groups (with tensor parallelism, `stride` groups) share the node's network cards.
  const double groups = std::min<double>(static_cast<double>(stride), static_cast<double>(c.gpus_per_node));
  bandwidth_ = nodes > 1 ? std::min(c.intra_node_bandwidth, c.inter_node_bandwidth / groups) : c.intra_node_bandwidth;
  overhead_seconds_ = scenario.engine.collective_overhead_us * 1e-6;
}

double Ring::gather(double bytes, double calls) const {
  if (ranks_ < 2) return 0;
  return calls * (overhead_seconds_ + hop_seconds_) + (ranks_ - 1) / ranks_ * bytes / bandwidth_;
}

double Ring::all_reduce(double bytes, double calls) const {
  if (ranks_ < 2) return 0;
  return calls * (overhead_seconds_ + 2 * hop_seconds_) + 2 * (ranks_ - 1) / ranks_ * bytes / bandwidth_;
}

double Ring::broadcasts(double bytes, double calls) const {
  if (ranks_ < 2) return 0;
  // Each rank broadcasts once; the operations are pipelined along the ring.
  return calls * ranks_ * overhead_seconds_ + calls * hop_seconds_ * 2 + 2 * (ranks_ - 1) / ranks_ * bytes / bandwidth_;
}

}  // namespace dsat::host::sim
