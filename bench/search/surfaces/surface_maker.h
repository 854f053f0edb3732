// Draws jobs one after another. The caller bends each with its own mechanisms.
// Threading: one thread. Errors: none. Units: as in surface.h.
#ifndef DSAT_BENCH_SEARCH_SURFACES_SURFACE_MAKER_H_
#define DSAT_BENCH_SEARCH_SURFACES_SURFACE_MAKER_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "search/surfaces/draw.h"
#include "search/surfaces/surfaces.h"

namespace dsat::bench {

class SurfaceMaker {
 public:
  // Makes surfaces of one family. Surface i uses substream i of `stream` and has the id `first_id` + i.
  SurfaceMaker(std::string family, uint64_t seed, uint64_t stream, uint64_t first_id)
      : family_(std::move(family)), seed_(seed), stream_(stream), first_id_(first_id) {}

  // The next drawn job, to be bent by the caller.
  Surface& next(std::string name, std::string about) {
    const uint64_t index = surfaces_.size();
    draw_ = Draw(seed_, stream_, index);
    Surface surface = draw_surface(draw_);
    surface.family = family_;
    surface.name = std::move(name);
    surface.about = std::move(about);
    surface.id = first_id_ + index;
    surfaces_.push_back(std::move(surface));
    return surfaces_.back();
  }

  // A share of the largest micro batch that fits, as a micro batch. It inverts draw_surface()'s max_micro_batch.
  double of_ceiling(const Surface& surface, double share) const {
    return std::max(2.0, share * 0.75 * static_cast<double>(surface.max_micro_batch - 16));
  }
  // Continues the draws of the last job.
  Draw& draw() { return draw_; }
  std::vector<Surface> take() { return std::move(surfaces_); }

 private:
  std::string family_;
  uint64_t seed_, stream_, first_id_;
  Draw draw_{seed_};
  std::vector<Surface> surfaces_;
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_SURFACE_MAKER_H_
