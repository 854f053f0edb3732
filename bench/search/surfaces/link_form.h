// The time of a collective by its size: protocols, rings and trees, nodes, and congestion.
//
// Sources: alpha-beta costs of rings and trees: Thakur, Rabenseifner and Gropp (2005). Three protocols (low latency
// with
//   part of the bandwidth, a middle one, full bandwidth with high latency): NCCL's documentation.
// Threading: pure functions. Units: bytes, seconds. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_LINK_FORM_H_
#define DSAT_BENCH_SEARCH_SURFACES_LINK_FORM_H_

#include <cstdint>
#include <vector>

namespace dsat::bench {

struct LinkProtocol {
  double hop_factor = 1;       // multiple of the hop's latency
  double bandwidth_share = 1;  // share of the link's bandwidth
};

struct LinkForm {
  int64_t ranks = 8, ranks_per_node = 8;
  double node_bytes_s = 1e11, network_bytes_s = 1e10;  // per device
  double hop_s = 5e-6;
  std::vector<LinkProtocol> protocols = std::vector<LinkProtocol>(1);  // the fastest one is used
  bool tree = false;                                                   // trees too: few hops, 0.8 of the bandwidth
  double half_bytes = 0, half_power = 1;       // a message of half_bytes has half of the bandwidth; 0: all are fast
  double congested_bytes = 0, congestion = 0;  // beyond this size (0: none) bandwidth falls by this share a doubling
  double call_s = 2e-5;                        // host time of a call
};

// The time of an all-gather or reduce-scatter of `bytes` in all. An all-reduce takes two.
double collective_s(const LinkForm& link, double bytes);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_LINK_FORM_H_
