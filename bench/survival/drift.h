// How a job's memory changes over its steps: a trial of six steps sees less of it than a training run.
//
// Purpose: bench_survival asks whether what a study hands back still fits after many more steps.
// Units: bytes; a share is of the peak that the surface's truth has. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SURVIVAL_DRIFT_H_
#define DSAT_BENCH_SURVIVAL_DRIFT_H_

#include <array>
#include <cstdint>

#include "search/surfaces/surface.h"

namespace dsat::bench {

enum class Drift {
  none,       // the same in every step
  jitter,     // each step's peak differs by 0.3 % from the others'
  fragments,  // the allocator's fragments grow with the logarithm of the steps, by up to 2 % in a thousand
  leak,       // something is kept in each step: up to 2 % of the device in a thousand
  lengths,    // samples of different lengths, padded to the longest of a micro batch; the truth's are the longest
};

struct DriftKind {
  Drift drift;
  const char* name;
};
inline constexpr std::array<DriftKind, 5> kDrifts{{{Drift::none, "none"},
                                                   {Drift::jitter, "jitter"},
                                                   {Drift::fragments, "fragments"},
                                                   {Drift::leak, "leak"},
                                                   {Drift::lengths, "lengths"}}};

// The highest peak within so many steps. `job` seeds what belongs to the job, `run` what differs from run to run.
double drifted_peak_bytes(Drift drift, const Surface& surface, const SurfacePoint& point, int steps, uint64_t job,
                          uint64_t run);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SURVIVAL_DRIFT_H_
