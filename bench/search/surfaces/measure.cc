// Adds noise to a surface's truth, seeded by surface, study, configuration and repetition. So the same question has the
// same answer for every searcher.
#include "search/surfaces/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "search/surfaces/draw.h"
#include "search/surfaces/hash.h"

namespace dsat::bench {
namespace {

constexpr double kMicro = 1e6;
constexpr double kSteps = 5;  // steps of a measured trial: the default --end-profile-step

bool is_model_information(const Json& config) {
  return config.value("/autotuning/model_info/profile"_json_pointer, false);
}

// The truth is a micro step's. A reported latency is that of a step.
double accumulation_of(const Surface& surface) {
  return surface.user_config.is_object() ? surface.user_config.value("gradient_accumulation_steps", 1.0) : 1;
}

testing::Answer model_information(const Surface& surface, Draw& draw) {
  const TrainingJob& job = surface.job;
  std::map<std::string, double> metrics{
      {"num_params", job.num_params},
      {"trainable_num_params", job.trained_params > 0 ? job.trained_params : job.num_params},
      {"activation_mem_per_gpu", job.activation_bytes * draw.uniform(0.7, 0.95)},
      {"world_size", static_cast<double>(job.gpus)}};
  if (surface.reports_device_memory) metrics["device_memory"] = job.device_memory;
  return testing::Answer::completed(std::move(metrics));
}

// Seconds of the phases and of the whole step.
struct Times {
  double forward_s = 0, backward_s = 0, step_s = 0, latency_s = 0;
  double spread = 0;  // of the steps, relative to their median
};

// The noise of a trial as a factor of its median step, and the spread of its steps. Part of the noise is common to all
// steps of a trial, so the steps do not show it.
std::pair<double, double> of_steps(const SurfaceNoise& noise, Draw& draw) {
  constexpr double kOfTrial = 0.6, kOfStep = 1.2;  // the median of three steps of 1.2 scatters by 0.8
  const double common = std::exp(kOfTrial * noise.trial * draw.normal());
  std::vector<double> steps(static_cast<size_t>(noise.steps));
  double sum = 0, squares = 0;
  for (double& step : steps) {
    step = common * std::exp(kOfStep * noise.trial * draw.normal());
    sum += step;
    squares += step * step;
  }
  const double n = static_cast<double>(noise.steps);
  std::sort(steps.begin(), steps.end());
  const double middle = steps[steps.size() / 2];
  return {middle, std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))) / middle};
}

// Phases with their own noise. The latency is their sum.
Times shaken_phases(const SurfaceNoise& noise, const Truth& truth, Draw& draw) {
  double slowdown = 1;
  if (draw.chance(noise.straggler_chance)) slowdown += noise.straggler_slowdown * -std::log(1 - draw.uniform(0, 1));
  const auto shaken = [&](double seconds, double deviation) {
    return slowdown * seconds * std::exp(deviation * draw.normal());
  };
  Times times;
  times.forward_s = shaken(truth.forward_s, noise.forward);
  times.backward_s = shaken(truth.backward_s, noise.backward);
  times.step_s = shaken(truth.step_s, noise.step);
  times.latency_s = times.forward_s + times.backward_s + times.step_s;
  return times;
}

// The latency has one draw a trial. The phases vary in their shares of it, so their sum, which the host reads from
// DeepSpeed's log, is exact.
Times shaken_trial(const SurfaceNoise& noise, const Truth& truth, bool alone, Draw& draw) {
  constexpr double kLeastStraggling = 0.03, kMostStraggling = 0.15;
  Times times;
  double slowdown = 1;
  if (noise.steps > 0) {
    std::tie(slowdown, times.spread) = of_steps(noise, draw);
  } else {
    slowdown = std::exp(noise.trial * draw.normal());
  }
  const bool straggles = draw.chance(noise.straggler_chance);
  const double straggling = draw.uniform(kLeastStraggling, kMostStraggling);
  const double interference = draw.uniform(0, noise.interference);
  if (straggles) slowdown *= 1 + straggling;
  if (!alone) slowdown *= 1 + interference;
  const auto shaken = [&](double seconds, double deviation) { return seconds * std::exp(deviation * draw.normal()); };
  times.forward_s = shaken(truth.forward_s, 1.5 * noise.trial);
  times.backward_s = shaken(truth.backward_s, 1.5 * noise.trial);
  times.step_s = shaken(truth.step_s, 3 * noise.trial);
  times.latency_s = slowdown * truth.latency_s();
  const double scale = times.latency_s / (times.forward_s + times.backward_s + times.step_s);
  for (double* phase_s : {&times.forward_s, &times.backward_s, &times.step_s}) *phase_s *= scale;
  return times;
}

testing::Answer measured(const Surface& surface, const SurfacePoint& point, const Truth& truth, bool alone,
                         Draw& draw) {
  const SurfaceNoise& noise = surface.noise;
  const Times times = noise.trial > 0 ? shaken_trial(noise, truth, alone, draw) : shaken_phases(noise, truth, draw);
  const double samples = static_cast<double>(point.micro_batch * surface.job.gpus);
  std::optional<uint64_t> peak;
  if (surface.reports_peak) {
    const double reported = truth.reported_bytes > 0 ? truth.reported_bytes : truth.peak_bytes;
    peak = static_cast<uint64_t>(std::min(surface.job.device_memory, reported * (1 + noise.peak * draw.normal())));
  }
  const double flops = surface.job.flops_per_sample * static_cast<double>(point.micro_batch) / times.latency_s;
  std::map<std::string, double> metrics{
      {"forward", times.forward_s * kMicro},     {"backward", times.backward_s * kMicro},
      {"step", times.step_s * kMicro},           {"latency", times.latency_s * kMicro * accumulation_of(surface)},
      {"throughput", samples / times.latency_s}, {"FLOPS_per_gpu", flops}};
  if (noise.steps > 0) {
    metrics["latency_spread"] = times.spread;
    metrics["latency_steps"] = noise.steps;
  }
  return testing::Answer::completed(std::move(metrics), peak);
}

}  // namespace

std::string identity(Json config) {
  config.erase("autotuning");
  return config.dump();
}

SurfaceTrial measure(const Surface& surface, const Json& config, uint64_t seed, uint64_t repetition, bool alone,
                     double now_s) {
  const SurfacePoint point = point_of(config);
  Draw draw(mix64(surface.id) ^ seed, fnv1a(identity(config)), 2 * repetition + (is_model_information(config) ? 1 : 0));
  Truth truth = surface.truth(point);
  const double slower = surface.machine ? surface.machine(now_s) : 1;
  for (double* phase_s : {&truth.forward_s, &truth.backward_s, &truth.step_s}) *phase_s *= slower;
  const double peak_bytes = truth.peak_bytes * (1 + surface.noise.memory * draw.normal());
  SurfaceTrial trial;
  trial.duration_s = surface.startup_s * draw.uniform(0.85, 1.15);
  if (surface.beyond_script(point)) {
    trial.duration_s *= 0.8;
    trial.answer = testing::Answer::failed(fmt::format(
        "ValueError: a batch of {} samples is more than the data set's {}", point.micro_batch, surface.script_limit));
    return trial;
  }
  Truth really = truth;
  really.peak_bytes = peak_bytes;
  if (!surface.fits(really)) {
    trial.duration_s *= 0.8;  // the trial dies in its first step
    trial.answer = testing::Answer::out_of_memory();
    return trial;
  }
  if (is_model_information(config)) {
    trial.duration_s += truth.forward_s;
    trial.answer = model_information(surface, draw);
    return trial;
  }
  trial.answer = measured(surface, point, truth, alone, draw);
  trial.duration_s += kSteps * trial.answer.metrics.at("latency") / kMicro;
  return trial;
}

}  // namespace dsat::bench
