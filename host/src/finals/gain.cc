// Collects the values of the two configurations and the repeats of all others, and turns the difference of logarithms
// and its 95 % interval (noise.h) back into a ratio.
#include "finals/gain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "finals/drift.h"
#include "finals/finals.h"
#include "finals/ignored_configuration.h"
#include "finals/simpler.h"

namespace dsat::host {
namespace {

Gain::Side side_of(const std::vector<double>& values, bool maximise) {
  const double mean = mean_of(values);
  return {std::exp(maximise ? mean : -mean), static_cast<int>(values.size())};
}

}  // namespace

std::optional<double> value_of(const Trial& trial, const std::string& metric, bool maximise) {
  if (trial.record.outcome != Outcome::completed || trial.record.duplicate_of || trial.model_info) return std::nullopt;
  return comparable_value(trial.record.metrics, metric, maximise);
}

Gain gain_between(const std::vector<double>& best, const std::vector<double>& before, const std::vector<double>& own,
                  const Repeats& others) {
  Gain gain;
  if (best.empty()) {
    gain.ratio = std::exp(mean_of(before) - mean_of(own));
    return gain;
  }
  const Difference apart = difference(best, own, others, before);
  gain.ratio = std::exp(apart.mean);
  gain.low = std::exp(apart.mean - apart.half_width());
  gain.high = std::exp(apart.mean + apart.half_width());
  return gain;
}

std::vector<double> values_of(const std::vector<Trial>& trials, const std::string& identity, const std::string& metric,
                              bool maximise, Measured when) {
  std::vector<double> values;
  const bool is_simplified = began_in_finals(trials, identity);
  for (const Trial& trial : trials) {
    if (trial.identity != identity) continue;
    const bool is_after = is_simplified || trial.phase == Phase::comparison;
    if (when != Measured::at_any_time && is_after != (when == Measured::after_choice)) continue;
    if (const auto value = value_of(trial, metric, maximise)) values.push_back(*value);
  }
  return values;
}

Repeats repeats_but(const std::vector<Trial>& trials, const std::string& metric, bool maximise, const std::string& a,
                    const std::string& b) {
  std::map<std::string, std::vector<double>> values;
  for (const Trial& trial : trials) {
    if (trial.identity == a || trial.identity == b) continue;
    if (const auto value = value_of(trial, metric, maximise)) values[trial.identity].push_back(*value);
  }
  Repeats repeats;
  for (const auto& [identity, of_one] : values) repeats.add(of_one);
  return repeats;
}

std::optional<Gain> gain_over_own(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                  const std::string& baseline_identity, uint64_t best) {
  if (baseline_identity.empty() || best >= trials.size()) return std::nullopt;
  const std::string& identity = trials[best].identity;
  std::vector<double> own = values_of(trials, baseline_identity, metric, maximise);
  const std::vector<double> all = values_of(trials, identity, metric, maximise);
  if (own.empty() || all.empty() || proof_of_ignored_configuration(trials)) return std::nullopt;
  const auto is_own = [&](const Trial& trial) {
    return trial.identity == baseline_identity && value_of(trial, metric, maximise);
  };
  const uint64_t baseline = std::find_if(trials.begin(), trials.end(), is_own)->id();
  Gain gain{1, 1, 1, baseline};
  if (identity == baseline_identity) return gain;
  const Repeats others = repeats_but(trials, metric, maximise, identity, baseline_identity);
  own = comparable(values_of(trials, baseline_identity, metric, maximise, Measured::before_choice),
                   values_of(trials, baseline_identity, metric, maximise, Measured::after_choice), others);
  const std::vector<double> after = values_of(trials, identity, metric, maximise, Measured::after_choice);
  const std::vector<double> before = values_of(trials, identity, metric, maximise, Measured::before_choice);
  gain = gain_between(after, before, own, others);
  gain.baseline = baseline;
  gain.of_best = side_of(after.empty() ? before : after, maximise);
  gain.of_own = side_of(own, maximise);
  gain.left_out = after.empty() ? 0 : static_cast<int>(before.size());
  return gain;
}

}  // namespace dsat::host
