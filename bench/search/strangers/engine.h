// One step of DeepSpeed, replayed layer by layer on two streams, and the memory at its moments.
//
// Sources: DeepSpeed's runtime/zero: stage_1_and_2.py (a bucket is sent when the next tensor would overflow it; with
//   overlap_comm backward waits for the bucket before; a tensor larger than the bucket goes alone), stage3.py and
//   partitioned_param_coordinator.py (each module gathers what is missing, then up to a prefetch bucket more, within
//   the live parameters; what is used again soon is kept). Bytes of states: Rajbhandari et al., ZeRO. Activations:
//   Korthikanti et al., Reducing Activation Recomputation. An optimizer on processors: Ren et al., ZeRO-Offload.
// Threading: pure functions. Units: seconds, bytes, elements. Errors: none.
#ifndef DSAT_BENCH_SEARCH_STRANGERS_ENGINE_H_
#define DSAT_BENCH_SEARCH_STRANGERS_ENGINE_H_

#include "search/strangers/device.h"
#include "search/strangers/fabric.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

struct HostSide {
  double pcie_bytes_s = 2.2e10;       // of a device
  double processor_bytes_s = 2.5e10;  // of the memory's bandwidth, for a device
};

struct Engine {
  double accumulation = 1;         // micro steps of a step
  bool reduces_to_owners = false;  // stages 1 and 2, with reduce_scatter: the older way
  double hook_s = 8e-5;            // of the host for a module at stage 3, in each pass
  double bucket_s = 1.5e-4;        // of the host for a bucket
  double overlap_share = 0.06;     // of the multiprocessors, taken by collectives beside computation
  double step_s = 3e-3;            // norms, loss scale, bookkeeping
};

struct Allocator {
  double context_bytes = 1.2e9;   // contexts, libraries, other buffers
  double fragments = 0.03;        // share of what comes and goes
  double loose_fragments = 0.02;  // a further share without contiguous_gradients, and at stage 3
  double segment_bytes = 2 << 20;
  double loss_bytes = 10;        // of a logit, where the loss is not fused: 16 bits, two copies in 32
  bool reports_reserved = true;  // false: a reported peak leaves out fragments
};

struct Training {
  Network network;
  Device device;
  Fabric fabric;
  HostSide host;
  Engine engine;
  Allocator allocator;
};

// Times of a micro step, with its share of what happens once a step.
Truth truth_of(const Training& training, const SurfacePoint& point);

double peak_bytes(const Training& training, const SurfacePoint& point);  // truth_of's
double activation_bytes(const Network& network, double micro_batch);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STRANGERS_ENGINE_H_
