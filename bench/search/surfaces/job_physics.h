// A training job under DeepSpeed with drawn forms, not only drawn constants: compute, links, memory and engine.
//
// Purpose: the physics of the families six, jobs and odd. Sources: the sources of the three forms, and
//   docs/real-deepspeed.md for what the engine sends, copies and hides at each stage.
// Threading: pure functions. Units: seconds, bytes, elements, samples. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_JOB_PHYSICS_H_
#define DSAT_BENCH_SEARCH_SURFACES_JOB_PHYSICS_H_

#include "search/surfaces/compute_form.h"
#include "search/surfaces/link_form.h"
#include "search/surfaces/memory_form.h"

namespace dsat::bench {

struct JobPhysics {
  ModelForm model;
  ComputeForm compute;
  LinkForm link;
  MemoryForm memory;
  double memory_bytes_s = 1e12;  // bandwidth of the device's memory
  double update_passes = 1.5;    // passes of a step over states, gradients and parameters
  double step_host_s = 4e-3;     // host time of a step, at any stage
  double bucket_host_s = 2e-4;   // host time of a bucket
  double module_host_s = 1e-4;   // host time of a layer at stage 3, in each pass
  double overlap_cost = 0.03;    // slowdown of overlapped compute, as a share
  double hides = 0.9;            // share of backward that overlap can use
  double stage2_cost = 0;        // slowdown of backward by partitioned gradients, as a share
  double host_bytes_s = 1e10;    // bandwidth of offload
  double host_update_s = 1e-10;  // update of an offloaded parameter
  double data_s = 0;             // least time of a sample, if a loader is part of the step
};

Truth job_truth(const JobPhysics& job, const SurfacePoint& point);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_JOB_PHYSICS_H_
