// Looks for a twin of the best by its keys, and compares it again with the runs of the user's own configuration.
#include "finals/twin_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "finals/twin.h"

namespace dsat::host {
namespace {

// One run of the own says nothing of how far apart two are.
constexpr double kOneRun = 3;
// Another micro batch draws other random numbers, as in dropout.
constexpr double kLeastOfOtherBatch = 0.1;

// Sections of a configuration that change what is learned, from the first update on.
constexpr const char* kLearning[] = {"optimizer", "scheduler", "gradient_clipping"};

bool learns_alike(const Json& a, const Json& b) {
  return std::all_of(std::begin(kLearning), std::end(kLearning),
                     [&](const char* key) { return a.value(key, Json()) == b.value(key, Json()); });
}

Curve first_step(Curve curve) {
  curve.losses.resize(std::min<size_t>(curve.losses.size(), 1));
  curve.grad_norms.resize(std::min<size_t>(curve.grad_norms.size(), 1));
  return curve;
}

bool is_anything_reported(const std::vector<Trial>& trials) {
  return std::any_of(trials.begin(), trials.end(), [](const Trial& trial) { return !trial.record.curve.empty(); });
}

TwinCheck unchecked(std::string why) { return {TwinCheck::State::unchecked, std::nullopt, std::move(why)}; }

const Trial* twin_of(const std::vector<Trial>& trials, const Trial& best) {
  const std::string keys = keys_of(best.record.config);
  const auto is_its = [&](const Trial& trial) {
    return trial.phase == Phase::twin && trial.record.outcome && keys_of(trial.record.config) == keys &&
           trial.record.outcome != Outcome::stopped && trial.record.outcome != Outcome::lost;
  };
  const auto found = std::find_if(trials.rbegin(), trials.rend(), is_its);
  return found == trials.rend() ? nullptr : &*found;
}

TwinCheck check_of_twin(const Trial& twin, const std::vector<const Trial*>& runs) {
  const uint64_t id = twin.id();
  if (twin.record.outcome != Outcome::completed) {
    return unchecked(
        fmt::format("its keys at your own batch ended as trial {}: {}", id, to_string(*twin.record.outcome)));
  }
  const Band band = band_for(runs, twin.record.config);
  const size_t values = band.compared(twin.record.curve);
  if (const std::string why = band.why_random(); !why.empty() && values == 0) return unchecked(why);
  if (values == 0) return unchecked(fmt::format("trial {}, with its keys, reports neither loss nor gradient norm", id));
  return {
      TwinCheck::State::agrees, id,
      fmt::format("its keys at your own batch (trial {}) give your own losses and gradient norms: {} values, {:.2g} % "
                  "apart at most",
                  id, values, 100 * band.farthest(twin.record.curve))};
}

}  // namespace

std::vector<const Trial*> runs_with_curve(const std::vector<Trial>& trials, const std::string& own) {
  std::vector<const Trial*> runs;
  for (const Trial& trial : trials) {
    const bool counts = !own.empty() && trial.identity == own && trial.record.outcome == Outcome::completed &&
                        !trial.record.duplicate_of && !trial.record.curve.empty();
    if (counts) runs.push_back(&trial);
  }
  return runs;
}

bool can_be_compared(const std::vector<const Trial*>& runs) {
  return !runs.empty() && band_for(runs, runs.front()->record.config).compared(runs.front()->record.curve) > 0;
}

Band band_for(const std::vector<const Trial*>& runs, const Json& config) {
  if (runs.empty()) return {{}, 0};
  const Json& own = runs.front()->record.config;
  double floor = std::max(band_floor(own), band_floor(config));
  if (runs.size() == 1) floor *= kOneRun;
  if (own.value(config::kMicroBatchKey, Json()) != config.value(config::kMicroBatchKey, Json())) {
    floor = std::max(floor, kLeastOfOtherBatch);
  }
  const bool are_alike = learns_alike(own, config);
  std::vector<Curve> curves;
  for (const Trial* run : runs) {
    curves.push_back(are_alike ? run->record.curve : first_step(run->record.curve));
  }
  return {std::move(curves), floor};
}

std::optional<TwinCheck> check_of_best(const std::vector<Trial>& trials, const std::string& own,
                                       std::optional<uint64_t> best, bool is_wanted, bool is_simulated) {
  if (!best || *best >= trials.size() || (is_simulated && !is_anything_reported(trials))) return std::nullopt;
  const Trial& chosen = trials[*best];
  if (chosen.identity == own && !own.empty()) {
    return TwinCheck{TwinCheck::State::own, std::nullopt, "it is your own configuration"};
  }
  if (!is_wanted) return unchecked("--no-twin");
  const std::vector<const Trial*> runs = runs_with_curve(trials, own);
  if (runs.empty()) {
    return unchecked(is_anything_reported(trials)
                         ? "your own configuration was not measured, so nothing can be compared"
                         : "nothing reports a loss or a gradient norm (--loss-pattern names the lines that do)");
  }
  if (keys_of(chosen.record.config) == keys_of(runs.front()->record.config)) {
    return TwinCheck{TwinCheck::State::own, std::nullopt, "it differs from your own configuration in its batch alone"};
  }
  if (!can_be_compared(runs)) {
    const std::string why = band_for(runs, runs.front()->record.config).why_random();
    return unchecked(!why.empty() ? why : "no loss and no gradient norm of your own configuration is a number");
  }
  if (const Trial* twin = twin_of(trials, chosen)) return check_of_twin(*twin, runs);
  return unchecked("no trial was left for its keys at your own batch, or it takes other devices");
}

std::vector<std::string> divergences(const std::vector<Trial>& trials) {
  std::vector<std::string> lines;
  for (const Trial& trial : trials) {
    if (is_wrong_twin(trial)) {
      lines.push_back(fmt::format("{} (trial {}): {}", trial.record.note, trial.id(), trial.record.reason));
    }
  }
  return lines;
}

}  // namespace dsat::host
