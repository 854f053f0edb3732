// A training job under DeepSpeed whose forms are drawn, not only its constants: compute, links, memory and engine.
//
// Purpose: the physics of the families six, jobs and odd. Sources: those of the three forms, and docs/real-deepspeed.md
//   for what the engine sends, copies and hides at each stage.
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
  double memory_bytes_s = 1e12;  // of the device
  double update_passes = 1.5;    // over states, gradients and parameters in a step
  double step_host_s = 4e-3;     // of a step, whatever the stage
  double bucket_host_s = 2e-4;   // of each bucket
  double module_host_s = 1e-4;   // of each layer at stage 3, in each pass
  double overlap_cost = 0.03;    // compute slows by this while it is overlapped
  double hides = 0.9;            // share of backward that overlap can use
  double stage2_cost = 0;        // of backward, for partitioning gradients
  double host_bytes_s = 1e10;    // offload: traffic to the host, and
  double host_update_s = 1e-10;  // a parameter's update there
  double data_s = 0;             // least time of a sample: a loader inside the step
};

Truth job_truth(const JobPhysics& job, const SurfacePoint& point);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_JOB_PHYSICS_H_
