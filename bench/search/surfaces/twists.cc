// Each mechanism changes the times or the memory of a point. anything() replaces both by sums of cosine waves.
#include "search/surfaces/twists.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "search/surfaces/draw.h"

namespace dsat::bench {
namespace {

void slow_all(Truth& truth, double factor) {
  truth.forward_s *= factor;
  truth.backward_s *= factor;
  truth.step_s *= factor;
}

}  // namespace

Twist thrashes_near_full(double share, double strength) {
  return [=](const TrainingJob& job, const SurfacePoint&, Truth& truth) {
    const double full = truth.peak_bytes / (job.usable_share * job.device_memory);
    if (full > share) slow_all(truth, 1 + strength * std::pow((full - share) / (1 - share), 2));
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
