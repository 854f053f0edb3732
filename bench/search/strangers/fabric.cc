// Each collective takes the faster of its algorithms and protocols: full bandwidth with full latency, or less of both.
#include "search/strangers/fabric.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dsat::bench {
namespace {

struct Protocol {
  double hop_share, bandwidth_share;
};
constexpr std::array<Protocol, 2> kProtocols{{{1, 1}, {0.45, 0.45}}};
constexpr double kTreeBandwidth = 0.88;

double nodes_of(const Fabric& fabric) {
  return std::ceil(static_cast<double>(fabric.ranks) / static_cast<double>(fabric.ranks_per_node));
}

double bandwidth_of(const Fabric& fabric) {
  const double nodes = nodes_of(fabric);
  if (nodes <= 1) return fabric.inside_bytes_s;
  const bool leaves = nodes > static_cast<double>(fabric.nodes_per_leaf);
  const double between = fabric.between_bytes_s / (leaves ? fabric.oversubscription : 1);
  return fabric.ranks_per_node == 1 ? between : std::min(fabric.inside_bytes_s, between);
}

// `rounds`: 1 to gather or to scatter, 2 for both.
double ring_s(const Fabric& fabric, double bytes, double rounds) {
  const double ranks = static_cast<double>(fabric.ranks), between = nodes_of(fabric) - 1;
  const double hops_s = (ranks - 1 - between) * fabric.inside_hop_s + between * fabric.between_hop_s;
  const double moved_s = (ranks - 1) / ranks * bytes / bandwidth_of(fabric);
  double best_s = 1e30;
  for (const Protocol& protocol : kProtocols) {
    best_s = std::min(best_s, rounds * (protocol.hop_share * hops_s + moved_s / protocol.bandwidth_share));
  }
  return best_s;
}

double tree_s(const Fabric& fabric, double bytes) {
  const double inside = static_cast<double>(std::min(fabric.ranks, fabric.ranks_per_node)) - 1;
  const double hops_s = inside * fabric.inside_hop_s + std::log2(nodes_of(fabric)) * fabric.between_hop_s;
  double best_s = 1e30;
  for (const Protocol& protocol : kProtocols) {
    const double moved_s = bytes / (kTreeBandwidth * protocol.bandwidth_share * bandwidth_of(fabric));
    best_s = std::min(best_s, 2 * (protocol.hop_share * hops_s + moved_s));
  }
  return best_s;
}

}  // namespace

double all_gather_s(const Fabric& fabric, double bytes) {
  if (fabric.ranks <= 1 || bytes <= 0) return 0;
  return fabric.call_s + ring_s(fabric, bytes, 1);
}

double all_reduce_s(const Fabric& fabric, double bytes) {
  if (fabric.ranks <= 1 || bytes <= 0) return 0;
  const double ring = ring_s(fabric, bytes, 2);
  return fabric.call_s + (fabric.trees ? std::min(ring, tree_s(fabric, bytes)) : ring);
}

double reduce_to_owners_s(const Fabric& fabric, double bytes, double owners) {
  if (fabric.ranks <= 1 || bytes <= 0) return 0;
  return owners * (fabric.call_s + tree_s(fabric, bytes / owners) / 2);
}

}  // namespace dsat::bench
