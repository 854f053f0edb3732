// Draws jobs whose forms differ: the physics of the families jobs and odd.
// Threading: pure functions. Units: as in job_physics.h. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_DRAW_JOB_H_
#define DSAT_BENCH_SEARCH_SURFACES_DRAW_JOB_H_

#include <string>

#include "search/surfaces/draw.h"
#include "search/surfaces/job_physics.h"

namespace dsat::bench {

// A job before it becomes a surface, so that a family may bend its physics.
struct DrawnJob {
  JobPhysics physics;
  double device_memory = 40e9, usable_share = 0.97;
  double flops_per_sample = 1e12;
  bool offload_axis = false;  // the optimizer's offload is there to choose
  std::string kind;           // what was drawn, in a few words
};

DrawnJob draw_job(Draw& draw);

// Forms alone, for jobs whose constants are given.
void draw_links(Draw& draw, LinkForm& link);
void draw_noise(Draw& draw, SurfaceNoise& noise);

// The largest micro batch that fits at any of the stages with the least buffers; 0: none below `most`.
int64_t highest_micro_batch(const DrawnJob& job, int64_t most);

// The surface of a job: its configuration, its noise, and how far its optimum is looked for.
Surface surface_of(const DrawnJob& job, Draw& draw);

// Whether a search of it is worth anything: stage 3 fits at micro batch 1, and the ceiling is neither tiny nor endless.
bool worth_tuning(const DrawnJob& job, Draw& draw);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_DRAW_JOB_H_
