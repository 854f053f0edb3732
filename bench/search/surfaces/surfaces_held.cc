// The scenarios held back for releases: other seeds, and mechanisms that no other surface has. The mechanisms come
// first, then the jobs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "search/surfaces/surface_maker.h"
#include "search/surfaces/surfaces.h"
#include "search/surfaces/twists.h"

namespace dsat::bench {
namespace {

constexpr uint64_t kSeed = 900'001;

// Devices clock down under sustained load, more with a larger micro batch.
Twist throttles(double from, double strength) {
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    const double samples = static_cast<double>(point.micro_batch);
    const double busy = samples / (samples + job.half_batch);
    const double factor = 1 + strength * std::max(0.0, busy - from) / (1 - from);
    truth.forward_s *= factor;
    truth.backward_s *= factor;
  };
}

// Small reduce buckets fall back to one message a layer and a slow protocol.
Twist small_buckets_fall_off(double elements, double slowdown) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    if (point.stage >= 1 && point.reduce_bucket < elements) truth.backward_s *= slowdown;
    if (point.stage >= 1 && point.stage < 3 && point.allgather_bucket < elements) truth.step_s *= slowdown;
  };
}

// Stages 0 and 1 use a fused kernel while the micro batch is small.
Twist fused_while_small(int64_t most, double speedup) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    if (point.stage <= 1 && point.micro_batch <= most) truth.forward_s /= speedup, truth.backward_s /= speedup;
  };
}

// Several copies of the reduce buckets are held.
Twist buckets_weigh(double times) {
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    if (point.stage >= 1) truth.peak_bytes += 2 * times * std::min(job.num_params, point.reduce_bucket);
  };
}

// Two flags pay only together.
Twist flags_interact(double gain) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    if (point.stage < 2) return;
    if (point.reduce_scatter != point.contiguous) truth.backward_s *= 1 + gain;
    if (!point.reduce_scatter && !point.contiguous && !point.overlap) truth.backward_s /= 1 + 2 * gain;
  };
}

void add_speed(SurfaceMaker& make) {
  make.next("held-throttle", "devices clock down under load").twists.push_back(throttles(0.5, 0.35));
  make.next("held-cliff", "small buckets fall off a cliff").twists.push_back(small_buckets_fall_off(4e7, 1.3));
  {
    Surface& s = make.next("held-fused", "stages 0 and 1 are fused while the micro batch is small");
    s.twists.push_back(fused_while_small(static_cast<int64_t>(make.of_ceiling(s, 0.3)), 1.25));
  }
  make.next("held-flags", "two flags only pay together").twists.push_back(flags_interact(0.12));
  {
    Surface& s = make.next("held-tiles", "tiles, and throughput that falls");
    s.twists.push_back(runs_in_tiles(6, 0.07));
    s.twists.push_back(falls_beyond(make.of_ceiling(s, 0.5), 0.25));
  }
}

void add_memory(SurfaceMaker& make) {
  make.next("held-buckets", "reduce buckets are held three times over").twists.push_back(buckets_weigh(3));
  {
    Surface& s = make.next("held-shared", "the memory that is there differs from trial to trial");
    s.noise.memory = 0.015;
  }
  {
    Surface& s = make.next("held-silent", "trials tell no peak, and noise");
    s.reports_peak = false;
    s.noise.forward = s.noise.backward = 0.02;
    s.noise.step = 0.05;
  }
  {
    Surface& s = make.next("held-power", "memory grows slower than the micro batch; a workspace in the middle");
    s.twists.push_back(memory_power(0.85, make.of_ceiling(s, 0.5)));
    const double from = make.of_ceiling(s, 0.3);
    s.twists.push_back(
        needs_workspace_between(static_cast<int64_t>(from), static_cast<int64_t>(1.5 * from) + 1, 0.5, 1.0));
  }
  for (uint64_t i = 0; i < 2; ++i) {
    Surface& s = make.next(fmt::format("held-anything-{}", i + 1), "not ZeRO-like at all");
    s.twists.push_back(anything(kSeed + i, 0.5));
    s.max_micro_batch = 1024;
  }
}

}  // namespace

std::vector<Surface> held_back_surfaces() {
  std::vector<Surface> surfaces = zero_surfaces(kSeed, 12);
  for (Surface& surface : surfaces) {
    surface.family = "held-back zero";
    surface.name = "held-" + surface.name;
  }
  SurfaceMaker make("held-back other", kSeed, 3, mix64(kSeed) + 100);
  add_speed(make);
  add_memory(make);
  for (Surface& surface : make.take()) surfaces.push_back(std::move(surface));
  return surfaces;
}

}  // namespace dsat::bench
