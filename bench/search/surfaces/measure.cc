// Adds noise to a surface's truth, seeded by surface, study, configuration and repetition: the same question under the
// same seed has the same answer, whoever asks.
#include "search/surfaces/measure.h"

#include <algorithm>

#include "search/surfaces/draw.h"
#include "search/surfaces/hash.h"

namespace dsat::bench {
namespace {

constexpr double kMicro = 1e6;
constexpr double kSteps = 5;  // of a measured trial: the default --end-profile-step

bool is_model_information(const Json& config) {
  return config.value("/autotuning/model_info/profile"_json_pointer, false);
}

testing::Answer model_information(const Surface& surface, Draw& draw) {
  const TrainingJob& job = surface.job;
  std::map<std::string, double> metrics{{"num_params", job.num_params},
                                        {"trainable_num_params", job.num_params},
                                        {"activation_mem_per_gpu", job.activation_bytes * draw.uniform(0.7, 0.95)},
                                        {"world_size", static_cast<double>(job.gpus)}};
  if (surface.reports_device_memory) metrics["device_memory"] = job.device_memory;
  return testing::Answer::completed(std::move(metrics));
}

testing::Answer measured(const Surface& surface, const SurfacePoint& point, const Truth& truth, Draw& draw) {
  const SurfaceNoise& noise = surface.noise;
  const auto shaken = [&](double seconds, double deviation) {
    return seconds * std::exp(deviation * draw.normal()) * kMicro;
  };
  double slowdown = 1;
  if (draw.chance(noise.straggler_chance)) slowdown += noise.straggler_slowdown * -std::log(1 - draw.uniform(0, 1));
  const double forward = slowdown * shaken(truth.forward_s, noise.forward);
  const double backward = slowdown * shaken(truth.backward_s, noise.backward);
  const double step = slowdown * shaken(truth.step_s, noise.step);
  const double latency = forward + backward + step;
  const double samples = static_cast<double>(point.micro_batch * surface.job.gpus);
  std::optional<uint64_t> peak;
  if (surface.reports_peak) {
    peak =
        static_cast<uint64_t>(std::min(surface.job.device_memory, truth.peak_bytes * (1 + noise.peak * draw.normal())));
  }
  const double flops = surface.job.flops_per_sample * static_cast<double>(point.micro_batch) * kMicro / latency;
  return testing::Answer::completed({{"forward", forward},
                                     {"backward", backward},
                                     {"step", step},
                                     {"latency", latency},
                                     {"throughput", samples * kMicro / latency},
                                     {"FLOPS_per_gpu", flops}},
                                    peak);
}

}  // namespace

std::string identity(Json config) {
  config.erase("autotuning");
  return config.dump();
}

SurfaceTrial measure(const Surface& surface, const Json& config, uint64_t seed, uint64_t repetition) {
  const SurfacePoint point = point_of(config);
  Draw draw(mix64(surface.id) ^ seed, fnv1a(identity(config)), 2 * repetition + (is_model_information(config) ? 1 : 0));
  Truth truth = surface.truth(point);
  const double peak_bytes = truth.peak_bytes * (1 + surface.noise.memory * draw.normal());
  SurfaceTrial trial;
  trial.duration_s = surface.startup_s * draw.uniform(0.85, 1.15);
  Truth really = truth;
  really.peak_bytes = peak_bytes;
  if (!surface.fits(really)) {
    trial.duration_s *= 0.8;  // it dies in its first step
    trial.answer = testing::Answer::out_of_memory();
    return trial;
  }
  if (is_model_information(config)) {
    trial.duration_s += truth.forward_s;
    trial.answer = model_information(surface, draw);
    return trial;
  }
  trial.answer = measured(surface, point, truth, draw);
  trial.duration_s += kSteps * trial.answer.metrics.at("latency") / kMicro;
  return trial;
}

}  // namespace dsat::bench
