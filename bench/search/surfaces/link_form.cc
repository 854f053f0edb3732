// Takes the fastest pair of protocol and topology, as a communication library does. The bandwidth of a message depends
// on its size, for small and for large ones.
#include "search/surfaces/link_form.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dsat::bench {
namespace {

double size_efficiency(const LinkForm& link, double bytes) {
  double efficiency = 1;
  if (link.half_bytes > 0) efficiency /= 1 + std::pow(link.half_bytes / bytes, link.half_power);
  if (link.congested_bytes > 0 && bytes > link.congested_bytes) {
    efficiency /= 1 + link.congestion * std::log2(bytes / link.congested_bytes);
  }
  return efficiency;
}

}  // namespace

double collective_s(const LinkForm& link, double bytes) {
  if (bytes <= 0) return 0;
  if (link.ranks <= 1) return link.call_s;
  const double ranks = static_cast<double>(link.ranks);
  const bool one_node = link.ranks <= link.ranks_per_node;
  const double bandwidth =
      (one_node ? link.node_bytes_s : std::min(link.node_bytes_s, link.network_bytes_s)) * size_efficiency(link, bytes);
  const double moved_s = bytes * (ranks - 1) / ranks / bandwidth;
  double best_s = std::numeric_limits<double>::infinity();
  for (const LinkProtocol& protocol : link.protocols) {
    const double hop_s = link.hop_s * protocol.hop_factor;
    best_s = std::min(best_s, hop_s * (ranks - 1) + moved_s / protocol.bandwidth_share);
    if (link.tree) best_s = std::min(best_s, 2 * hop_s * std::log2(ranks) + moved_s / (0.8 * protocol.bandwidth_share));
  }
  return link.call_s + best_s;
}

}  // namespace dsat::bench
