// Jobs with DeepSpeed's allocations and drawn forms of everything else. A job that is not worth tuning is drawn again.
#include <fmt/format.h>

#include <utility>

#include "search/surfaces/draw_job.h"
#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

constexpr uint64_t kJobsStream = 42;

}  // namespace

std::vector<Surface> job_surfaces(uint64_t seed, int count) {
  std::vector<Surface> surfaces;
  for (int i = 0; i < count; ++i) {
    Draw draw(seed, kJobsStream, static_cast<uint64_t>(i));
    DrawnJob job = draw_job(draw);
    while (!worth_tuning(job, draw)) job = draw_job(draw);
    Surface surface = surface_of(job, draw);
    surface.family = "jobs";
    surface.name = fmt::format("jobs-{}", i + 1);
    surface.id = mix64(60'000 + seed) + static_cast<uint64_t>(i);
    surfaces.push_back(std::move(surface));
  }
  return surfaces;
}

Surface reporting(Surface surface) {
  surface.reports_peak = true;
  return surface;
}

Surface silent(Surface surface) {
  surface.reports_peak = false;
  return surface;
}

}  // namespace dsat::bench
