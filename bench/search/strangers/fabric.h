// Times of collectives by counting steps: rings, trees, and the two protocols of a message.
//
// Sources: steps and their latencies inside and between nodes as NCCL's own tuning model counts them (src/graph/tuning
//   of its sources): a ring takes p - 1 steps for an all-gather and 2 (p - 1) for an all-reduce, nodes - 1 or
//   2 (nodes - 1) of them between nodes; double binary trees (Sanders, Speck and Traeff 2009) serve all-reduce alone.
//   Volumes: Thakur, Rabenseifner and Gropp (2005). A leaf and spine network gives less beyond a leaf.
// Threading: pure functions. Units: bytes, seconds. Errors: none.
#ifndef DSAT_BENCH_SEARCH_STRANGERS_FABRIC_H_
#define DSAT_BENCH_SEARCH_STRANGERS_FABRIC_H_

#include <cstdint>

namespace dsat::bench {

struct Fabric {
  int64_t ranks = 8, ranks_per_node = 8;
  double inside_bytes_s = 2e11, between_bytes_s = 2.5e10;  // of a ring through a node; of all cards of a node
  double inside_hop_s = 3e-6, between_hop_s = 1.4e-5;      // latency of a step
  int64_t nodes_per_leaf = 16;
  double oversubscription = 1;  // of the links above a leaf
  double call_s = 2e-5;         // to launch a collective
  bool trees = true;            // NCCL has them from 2.4 on; other libraries have rings alone
};

double all_gather_s(const Fabric& fabric, double bytes);  // bytes: of the whole; a reduce-scatter takes as long
double all_reduce_s(const Fabric& fabric, double bytes);
// Reduced to one owner after the other, each of an equal part: what DeepSpeed did before it reduced for several at
// once.
double reduce_to_owners_s(const Fabric& fabric, double bytes, double owners);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STRANGERS_FABRIC_H_
