// The loss falls by a twentieth a step. Half of the squared norm is signal, half is noise that the batch averages.
#include "sim/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/random.h"
#include "sim/scenario_section.h"

namespace dsat::host::sim {
namespace {

constexpr double kFall = 0.05;
constexpr double kSignal = 0.5;

TrainingFault read_fault(const Json& json, const std::string& name, const std::string& source) {
  Section section({{name, json}}, name, source);
  TrainingFault fault;
  fault.when = section.object("when");
  fault.grad_norm_factor = section.not_negative("grad_norm_factor", 1);
  fault.is_stuck = section.flag("stuck", false);
  if (section.has("nan_at")) fault.nan_at = section.count("nan_at");
  section.finish();
  if (fault.when.empty()) section.wrong("when", "is empty: name the values with which the fault comes");
  return fault;
}

bool applies(const TrainingFault& fault, const Json& config) {
  return std::all_of(fault.when.items().begin(), fault.when.items().end(), [&](const auto& item) {
    const Json* value = config::find(config, item.key());
    return value != nullptr && *value == item.value();
  });
}

}  // namespace

Training read_training(const Json& scenario, const std::string& source) {
  Section section(scenario, "training", source);
  Training training;
  training.loss = section.not_negative("loss", 0);
  training.grad_norm = section.not_negative("grad_norm", 0);
  training.noise = section.share("noise", 1e-5);
  const Json faults = section.list("faults");
  section.finish();
  for (size_t i = 0; i < faults.size(); ++i) {
    training.faults.push_back(read_fault(faults[i], fmt::format("training.faults[{}]", i), source));
  }
  return training;
}

Curve curve_of(const Training& training, const Json& config, int64_t steps, uint64_t seed) {
  Curve curve;
  Random random(mix64(seed));
  const auto noise = [&] { return 1 + training.noise * (2 * random.uniform() - 1); };
  const auto batch = std::max(1.0, config.value(config::kTrainBatchKey, 1.0));
  double norm = training.grad_norm * std::sqrt(kSignal + (1 - kSignal) / batch);
  bool is_stuck = false;
  int64_t nan_at = std::numeric_limits<int64_t>::max();
  for (const TrainingFault& fault : training.faults) {
    if (!applies(fault, config)) continue;
    norm *= fault.grad_norm_factor;
    is_stuck = is_stuck || fault.is_stuck;
    nan_at = std::min(nan_at, fault.nan_at.value_or(nan_at));
  }
  for (int64_t step = 0; step < steps; ++step) {
    const double fallen = std::exp(-kFall * static_cast<double>(step));
    const double loss = is_stuck ? training.loss : training.loss * fallen * noise();
    const bool is_nan = step + 1 >= nan_at;
    if (training.loss > 0) curve.losses.emplace_back(is_nan ? std::nan("") : loss);
    if (training.grad_norm > 0) curve.grad_norms.emplace_back(norm * fallen * noise());
  }
  return curve;
}

}  // namespace dsat::host::sim
