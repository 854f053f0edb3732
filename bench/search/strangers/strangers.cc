// A drawn job becomes a surface if it fits and has something to tune; else it is drawn again.
#include "search/strangers/strangers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsat::bench {
namespace {

constexpr uint64_t kStrangeStream = 44;
constexpr int64_t kLeastCeiling = 5, kMostCeiling = 240;  // largest micro batches that are worth a search

bool fits(const StrangeJob& job, const SurfacePoint& point) {
  Truth truth;
  truth.peak_bytes = peak_bytes(job.training, point);
  return job.surface.fits(truth);
}

// The point of a stage that needs the least memory.
SurfacePoint leanest(const StrangeJob& job, int stage, int64_t micro_batch) {
  SurfacePoint point;
  point.stage = stage;
  point.micro_batch = micro_batch;
  point.reduce_bucket = 1e6;
  point.prefetch_bucket = 5e6;
  point.reuse_distance = point.sub_group = 1e8;
  point.offload_optimizer = job.surface.offload_axis;
  return point;
}

// The largest micro batch that fits at any stage; memory grows with it.
int64_t ceiling_of(const StrangeJob& job) {
  const auto fits_somewhere = [&](int64_t micro_batch) {
    for (int stage = 0; stage <= 3; ++stage) {
      if (fits(job, leanest(job, stage, micro_batch))) return true;
    }
    return false;
  };
  int64_t low = 0, high = 4096;
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    (fits_somewhere(middle) ? low : high) = middle;
  }
  return low;
}

// Fills the device until the leanest values alone fit the largest micro batch. False: that would win less than 3 %.
bool tighten(Draw& draw, StrangeJob& job, int64_t ceiling) {
  constexpr double kLeastGain = 1.03;
  const SurfacePoint lean = leanest(job, 3, ceiling);
  const double room = job.surface.job.usable_share * job.surface.job.device_memory;
  job.training.allocator.context_bytes += draw.uniform(0.985, 0.998) * room - peak_bytes(job.training, lean);
  SurfacePoint usual;
  usual.stage = 3;
  usual.overlap = true;
  usual.micro_batch = ceiling;
  if (!fits(job, lean) || fits(job, usual)) return false;
  usual.micro_batch = ceiling - 1;
  const double samples = static_cast<double>(ceiling), fewer = static_cast<double>(ceiling - 1);
  SurfacePoint best = lean;
  best.overlap = true;
  const double gain =
      samples / truth_of(job.training, best).latency_s() * truth_of(job.training, usual).latency_s() / fewer;
  return gain >= kLeastGain;
}

// The lowest and the highest stage whose default values fit a sample are as likely as those between.
bool choose_user_stage(Draw& draw, StrangeJob& job) {
  std::vector<int> possible;
  for (SurfacePoint point; point.stage <= 3; ++point.stage) {
    point.overlap = point.stage == 3;
    if (fits(job, point)) possible.push_back(point.stage);
  }
  if (possible.empty() || possible.back() != 3) return false;
  job.surface.user_stage = draw.pick(possible);
  return true;
}

// Fills in the surface. False: this job is not worth a search.
bool finish(Draw& draw, StrangeJob& job) {
  const Training& training = job.training;
  const Network& network = training.network;
  Surface& surface = job.surface;
  surface.job.num_params = network.params();
  surface.job.flops_per_sample = 6 * network.params() * network.sequence * (network.recomputed ? 4.0 / 3 : 1);
  surface.job.activation_bytes = activation_bytes(network, 1);
  surface.job.gpus = training.fabric.ranks;
  surface.job.device_memory = training.device.memory_bytes;
  surface.job.usable_share = draw.uniform(0.95, 0.99);
  surface.noise.trial = draw.pick<double>({0.003, 0.01, 0.025});
  surface.noise.peak = 0.001;
  surface.startup_s = draw.log_uniform(20, 100);
  const int64_t ceiling = ceiling_of(job);
  const int64_t most = surface.script_limit > 0 ? std::min(surface.script_limit, ceiling) : ceiling;
  if (most < kLeastCeiling || most > kMostCeiling) return false;
  if (job.tight && !tighten(draw, job, ceiling)) return false;
  if (!choose_user_stage(draw, job)) return false;
  surface.max_micro_batch = most + 2;
  if (training.engine.accumulation > 1) {
    surface.user_config = Surface().base_config();
    surface.user_config["gradient_accumulation_steps"] = static_cast<int64_t>(training.engine.accumulation);
  }
  surface.physics = [training](const SurfacePoint& point) { return truth_of(training, point); };
  return true;
}

}  // namespace

std::vector<Surface> strange_surfaces(uint64_t seed, int each) {
  std::vector<Surface> surfaces;
  for (const StrangeFamily& family : strange_families()) {
    for (int i = 1; i <= each; ++i) {
      Draw draw(seed, kStrangeStream, surfaces.size());
      StrangeJob job;
      do {
        job = {};
        family.draw(draw, job);
      } while (!finish(draw, job));
      job.surface.family = fmt::format("strange-{}", family.name);
      job.surface.name = fmt::format("{}-{}", family.name, i);
      job.surface.about =
          fmt::format("{}; {:.2g}B parameters on {} devices of {:.0f} GB", family.about,
                      job.surface.job.num_params / 1e9, job.surface.job.gpus, job.surface.job.device_memory / 1e9);
      job.surface.id = mix64(80'000 + seed) + surfaces.size();
      surfaces.push_back(std::move(job.surface));
    }
  }
  return surfaces;
}

}  // namespace dsat::bench
