// fit_memory: checks its input, and asks for the posterior.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cost/posterior/memory_posterior.h"

namespace dsat::cost {
namespace {

void check_bytes(const std::optional<double>& bytes, const char* what) {
  if (bytes && (!std::isfinite(*bytes) || *bytes < 0)) {
    throw Error(fmt::format("{} is {:f}; it must be a number that is not negative", what, *bytes));
  }
}

void check(const Inputs& inputs, const std::vector<Observation>& observations) {
  model_state_bytes(inputs.size, Setup());  // throws for an impossible size
  check_bytes(inputs.activation_bytes_at_micro_batch_1, "activation bytes at micro batch 1");
  check_bytes(inputs.device_memory_bytes, "device memory");
  const auto check_interval = [](const std::optional<Interval>& interval, const std::string& what) {
    if (!interval) return;
    check_bytes(interval->value, what.c_str());
    check_bytes(interval->low, (what + ", low").c_str());
    check_bytes(interval->high, (what + ", high").c_str());
  };
  check_interval(inputs.activation_bytes_per_sample, "activation bytes per sample");
  check_interval(inputs.fixed_bytes, "fixed bytes");
  for (const Observation& observation : observations) check_bytes(observation.peak_bytes, "an observed peak");
}

}  // namespace

Interval fixed_bytes_by_forward(const ModelSize& size, const Setup& setup, double peak_bytes, double activation_bytes) {
  check_bytes(peak_bytes, "the model-information trial's peak");
  check_bytes(activation_bytes, "the model-information trial's activations");
  const double left = std::max(0.0, peak_bytes - forward_bytes(size, setup) - activation_bytes);
  const double layer = size.largest_layer_params * (setup.accumulation_dtype == Precision::fp32 ? 4 : 2);
  return {left + 0.1 * layer, 0.5 * left, left + layer + 0.5 * activation_bytes};
}

MemoryFit fit_memory(const Inputs& inputs, const std::vector<Observation>& observations) {
  check(inputs, observations);
  return {inputs, observations, std::make_shared<MemoryPosterior>(inputs, observations)};
}

}  // namespace dsat::cost
