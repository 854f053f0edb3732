// Trials of the profiler are not judged: they come before the user's own configuration.
#include "study/watch/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/config/batch.h"
#include "finals/agreement.h"
#include "finals/twin_check.h"

namespace dsat::host {
namespace {

bool is_finite(const Curve& curve) { return !curve.empty() && !first_not_finite(curve); }

bool any_is_finite(const std::vector<Trial>& trials) {
  return std::any_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.record.outcome == Outcome::completed && is_finite(trial.record.curve);
  });
}

// What the user's own has not been seen to have: a step in which its value is finite, or beyond its steps.
bool is_news(const Mismatch& odd, const Curve& own) {
  const auto own_odd = first_not_finite(own);
  return !own_odd || own_odd->is_of_loss != odd.is_of_loss;
}

int64_t train_batch(const Trial& trial) { return trial.record.config.value(config::kTrainBatchKey, int64_t{1}); }

std::string why_against(const Trial& own, const Trial& trial, const Curve& curve) {
  const Curve& reference = own.record.curve;
  const auto odd = first_not_finite(curve);
  if (odd && is_news(*odd, reference)) return describe_not_finite(*odd);
  const double floor = std::max(band_floor(own.record.config), band_floor(trial.record.config));
  if (std::string why = what_is_stuck(reference, curve, floor); !why.empty()) return why;
  return what_does_not_scale({reference, train_batch(own)}, {curve, train_batch(trial)});
}

}  // namespace

std::string why_diverged(const Trial& trial, const TrialEnd& end, const std::vector<Trial>& trials,
                         const std::string& own) {
  const bool is_judged =
      end.outcome == Outcome::completed && !trial.model_info && trial.phase > Phase::baseline && trial.identity != own;
  if (!is_judged || end.curve.empty()) return "";
  const std::vector<const Trial*> runs = runs_with_curve(trials, own);
  if (runs.empty()) {
    const auto odd = first_not_finite(end.curve);
    return odd && any_is_finite(trials) ? describe_not_finite(*odd) : "";
  }
  if (trial.phase == Phase::twin) {
    const auto mismatch = band_for(runs, trial.record.config).leaves(end.curve);
    return mismatch ? describe(*mismatch) : "";
  }
  return why_against(*runs.front(), trial, end.curve);
}

std::optional<std::string> why_no_reference(const Trial& trial, const std::vector<Trial>& trials,
                                            const std::string& own) {
  if (own.empty() || trial.identity != own || trial.record.outcome != Outcome::completed) return std::nullopt;
  const std::vector<const Trial*> runs = runs_with_curve(trials, own);
  if (runs.empty() || runs.front()->id() != trial.id()) return std::nullopt;
  const auto odd = first_not_finite(trial.record.curve);
  if (!odd) return std::nullopt;
  return fmt::format("{} of your own configuration (trial {}): trials are not checked for that",
                     describe_not_finite(*odd), trial.id());
}

}  // namespace dsat::host
