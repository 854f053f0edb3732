// Draws jobs with different forms of physics, for the families jobs and odd.
// Threading: pure functions. Units: as in job_physics.h. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_DRAW_JOB_H_
#define DSAT_BENCH_SEARCH_SURFACES_DRAW_JOB_H_

#include <string>

#include "search/surfaces/draw.h"
#include "search/surfaces/job_physics.h"

namespace dsat::bench {

// A job before it becomes a surface. A family may bend its physics.
struct DrawnJob {
  JobPhysics physics;
  double device_memory = 40e9, usable_share = 0.97;
  double flops_per_sample = 1e12;
  bool offload_axis = false;  // the study may offload the optimizer
  std::string kind;           // a few words on what was drawn
};

DrawnJob draw_job(Draw& draw);

// Draw forms only, for jobs with given constants.
void draw_links(Draw& draw, LinkForm& link);
void draw_noise(Draw& draw, SurfaceNoise& noise);

// The largest micro batch that fits at any stage with the smallest buffers; 0: none, or at least `most`.
int64_t highest_micro_batch(const DrawnJob& job, int64_t most);

// The surface of a job: configuration, noise, and the bound of the search for its optimum.
Surface surface_of(const DrawnJob& job, Draw& draw);

// Is a search of this job useful? Stage 3 fits at micro batch 1, and the ceiling is neither tiny nor huge.
bool worth_tuning(const DrawnJob& job, Draw& draw);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_DRAW_JOB_H_
