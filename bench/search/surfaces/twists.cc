// Each mechanism changes the times or the memory of a point. anything() replaces both by sums of cosine waves.
#include "search/surfaces/twists.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "search/surfaces/draw.h"

namespace dsat::bench {
namespace {

void slow_compute(Truth& truth, double factor) {
  truth.forward_s *= factor;
  truth.backward_s *= factor;
}

void slow_all(Truth& truth, double factor) {
  slow_compute(truth, factor);
  truth.step_s *= factor;
}

}  // namespace

Twist falls_beyond(double from, double strength) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    const double doublings = std::log2(static_cast<double>(point.micro_batch) / from);
    if (doublings > 0) slow_compute(truth, 1 + strength * doublings);
  };
}

Twist thrashes_near_full(double share, double strength) {
  return [=](const TrainingJob& job, const SurfacePoint&, Truth& truth) {
    const double full = truth.peak_bytes / (job.usable_share * job.device_memory);
    if (full > share) slow_all(truth, 1 + strength * std::pow((full - share) / (1 - share), 2));
  };
}

Twist runs_in_tiles(int64_t tile, double misfit) {
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    const int64_t rest = point.micro_batch % tile;
    if (rest == 0) return;
    const double wasted = static_cast<double>(tile - rest);
    const double samples = static_cast<double>(point.micro_batch);
    slow_compute(truth, (samples + job.half_batch + 0.5 * wasted) / (samples + job.half_batch) * (1 + misfit));
  };
}

Twist needs_workspace_between(int64_t from, int64_t below, double share_of_memory, double speedup) {
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    if (point.micro_batch < from || point.micro_batch >= below) return;
    truth.peak_bytes += share_of_memory * job.device_memory;
    slow_compute(truth, 1 / speedup);
  };
}

Twist memory_power(double exponent, double at) {
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    const double samples = static_cast<double>(point.micro_batch);
    const double line = job.activation_bytes * samples;
    truth.peak_bytes += line * (std::pow(samples / at, exponent - 1) - 1);
  };
}

Twist memory_blocks(double block_bytes) {
  return [=](const TrainingJob&, const SurfacePoint&, Truth& truth) {
    truth.peak_bytes = std::ceil(truth.peak_bytes / block_bytes) * block_bytes;
  };
}

Twist bucket_optimum(double reduce, double allgather, double strength) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    if (point.stage == 0) return;
    const double off_reduce = std::log10(point.reduce_bucket / reduce);
    const double off_gather = std::log10(point.allgather_bucket / allgather);
    truth.backward_s *= 1 + strength * off_reduce * off_reduce;
    const double gathered = strength * off_gather * off_gather * 0.5;
    truth.forward_s *= 1 + gathered;
    truth.step_s *= 1 + gathered;
  };
}

Twist overlap_hurts(double slowdown) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    if (point.stage >= 2 && point.overlap) truth.backward_s *= 1 + slowdown;
  };
}

Twist stage_factors(std::vector<double> factors) {
  return [factors = std::move(factors)](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    slow_all(truth, factors[static_cast<size_t>(point.stage)]);
  };
}

Twist input_bound(double samples_per_s) {
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    const double least_s = static_cast<double>(point.micro_batch * job.gpus) / samples_per_s;
    // The loader works in parallel with the step. The slower one decides, smoothly.
    const double latency_s = truth.latency_s();
    slow_all(truth, std::pow(std::pow(latency_s, 8) + std::pow(least_s, 8), 1.0 / 8) / latency_s);
  };
}

Twist valley(double at, double log2_width, double depth) {
  return [=](const TrainingJob&, const SurfacePoint& point, Truth& truth) {
    const double distance = std::log2(static_cast<double>(point.micro_batch) / at) / log2_width;
    slow_compute(truth, 1 + depth * std::exp(-0.5 * distance * distance));
  };
}

Twist anything(uint64_t seed, double roughness) {
  struct Wave {
    std::array<double, 8> direction;
    double phase, height;
  };
  std::vector<Wave> speed, memory;
  Draw draw(seed, 77);
  for (int i = 0; i < 12; ++i) {
    Wave wave;
    for (double& part : wave.direction) part = draw.normal();
    wave.phase = draw.uniform(0, 6.283);
    wave.height = roughness * draw.normal() / 3.5;
    (i < 8 ? speed : memory).push_back(wave);
  }
  std::vector<double> stage_speed, stage_memory;
  for (int stage = 0; stage < 4; ++stage) stage_speed.push_back(draw.uniform(0.7, 1.4));
  for (int stage = 0; stage < 4; ++stage) stage_memory.push_back(draw.uniform(0.1, 0.4));
  const double rise = draw.uniform(0.1, 0.6), per_doubling = draw.uniform(0.07, 0.16);
  return [=](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    const double doublings = std::log2(static_cast<double>(point.micro_batch));
    const std::array<double, 8> at{0.45 * doublings,
                                   0.5 * point.stage,
                                   point.stage == 0 ? 0 : 0.35 * std::log10(point.reduce_bucket / 5e7),
                                   point.stage == 0 ? 0 : 0.35 * std::log10(point.allgather_bucket / 5e7),
                                   point.stage >= 2 && point.overlap ? 0.4 : 0.0,
                                   point.stage >= 2 && point.reduce_scatter ? 0.3 : 0.0,
                                   point.stage >= 2 && point.contiguous ? 0.3 : 0.0,
                                   point.stage >= 3 && point.allgather_partitions ? 0.3 : 0.0};
    const auto field = [&](const std::vector<Wave>& waves) {
      double sum = 0;
      for (const Wave& wave : waves) {
        double angle = wave.phase;
        for (size_t i = 0; i < at.size(); ++i) angle += wave.direction[i] * at[i];
        sum += wave.height * std::cos(angle);
      }
      return sum;
    };
    const size_t stage = static_cast<size_t>(point.stage);
    const double per_second =
        100 * stage_speed[stage] * std::exp(field(speed) + rise * std::min(doublings, 6.0) * 0.69);
    const double latency_s = static_cast<double>(point.micro_batch * job.gpus) / per_second;
    truth.forward_s = 0.3 * latency_s;
    truth.backward_s = 0.5 * latency_s;
    truth.step_s = 0.2 * latency_s;
    const double share = stage_memory[stage] + per_doubling * doublings * std::exp(0.5 * field(memory));
    truth.peak_bytes = share * job.device_memory;
    truth.reported_bytes = 0;  // trials report this memory, not that of the replaced physics
  };
}

}  // namespace dsat::bench
