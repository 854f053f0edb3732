// Ranks the changed keys by their expected effect, puts them back one by one while the sum stays small, and leaves out
// what breaks a rule or may not fit.
#include "study/state/simplify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dsat/base/affix.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"
#include "facts/memory.h"
#include "finals/effects.h"
#include "finals/finals.h"
#include "finals/gain.h"
#include "study/state/admission.h"

namespace dsat::host {
namespace {

// The second try puts back what costs less than this share of the first one's limit.
constexpr double kCautious = 0.2;
// An effect that is known worse than this is no reason to put a stage back.
constexpr double kUnknownStage = 0.03;

// The micro batch is what was searched for, and the stages of a pipeline decide how large a job is. The ZeRO stage goes
// back by itself (own_stage).
bool stays_changed(const std::string& key) {
  return key == config::kMicroBatchKey || key == config::kStageKey || key == config::kPipelineStagesKey ||
         starts_with(key, "autotuning.");
}

class Simplifier {
 public:
  Simplifier(const StudyState& state, uint64_t best)
      : state_(state),
        best_(state.trials[best]),
        effects_(effects_of(state)),
        memory_({state.profile, state.device_memory.usable(), state.plan.data_parallel_size,
                 state.plan.filled_in_precision()},
                state.trials.all()),
        highest_peak_(highest_peak(state, memory_)) {}

  // The simplest configuration that is expected to cost no more than `most`; nullopt: nothing can be put back.
  std::optional<Simpler> within(double most) const {
    Simpler found;
    found.overrides = best_.record.overrides;
    std::vector<std::string> put_back;
    if (const auto moved = own_stage(found.overrides); moved && cost(*moved, most)) {
      found.overrides = *moved;
      put_back.push_back(config::kStageKey);
    }
    for (const std::string& key : changed_keys(found.overrides)) {
      const Json without = with_own(found.overrides, key);
      if (!cost(without, most)) continue;
      found.overrides = without;
      put_back.push_back(key);
    }
    if (put_back.empty()) return std::nullopt;
    const Effects::Loss loss = *cost(found.overrides, most);
    found.loss = loss.mean;
    found.deviation = loss.deviation;
    found.note = fmt::format("trial {} with your own {}", best_.id(), fmt::join(put_back, ", "));
    return found;
  }

 private:
  static Effects effects_of(const StudyState& state) {
    std::vector<Effects::Measurement> measured;
    for (const Trial& trial : state.trials.all()) {
      const auto value = value_of(trial, state.plan.metric, state.plan.maximise);
      if (value) measured.push_back({choices_of(trial.record.config, state.plan.space), *value});
    }
    return {std::move(measured),
            pooled_variance(repeats_but(state.trials.all(), state.plan.metric, state.plan.maximise, "", ""))};
  }

  // The overrides with the user's own value of a key.
  Json with_own(const Json& overrides, const std::string& key) const {
    Json changed = overrides;
    config::erase_with_sections(changed, key);
    if (const Json* own = config::find(state_.baseline.overrides, key)) config::set(changed, key, *own);
    return changed;
  }

  std::optional<Json> own_stage(const Json& overrides) const {
    const int own = config::zero_stage(state_.plan.base_config);
    const config::StageSpace* stage = state_.plan.space.stage(own);
    if (stage == nullptr || own == config::zero_stage(best_.record.config)) return std::nullopt;
    if (!has_run(own)) return std::nullopt;
    Json moved = overrides;
    for (const auto& [key, value] : config::leaves_of(overrides)) {
      const auto is_axis = [&key = key](const config::Axis& axis) { return axis.key == key; };
      if (!stays_changed(key) && std::none_of(stage->axes.begin(), stage->axes.end(), is_axis))
        moved = with_own(moved, key);
    }
    config::erase_with_sections(moved, config::kStageKey);
    const Admission admission = admit(state_.plan, moved);
    if (!admission.invalid.empty() || config::zero_stage(admission.config) != own) return std::nullopt;
    if (effects_.loss(choices(best_.record.config), choices(admission.config)).deviation > kUnknownStage) return {};
    return moved;
  }

  // Has the stage completed a trial of at least the best's micro batch?
  bool has_run(int stage) const {
    const auto micro_batch = [](const Trial& trial) { return trial.record.config.value(config::kMicroBatchKey, 0.0); };
    const std::vector<Trial>& all = state_.trials.all();
    return std::any_of(all.begin(), all.end(), [&](const Trial& trial) {
      return trial.record.outcome == Outcome::completed && !trial.model_info &&
             config::zero_stage(trial.record.config) == stage && micro_batch(trial) >= micro_batch(best_);
    });
  }

  // The keys that differ from the user's own, the one with the smallest effect first.
  std::vector<std::string> changed_keys(const Json& overrides) const {
    const Choices now = choices(admit(state_.plan, overrides).config);
    std::vector<std::pair<double, std::string>> keys;
    for (const auto& [key, value] : config::leaves_of(overrides)) {
      if (stays_changed(key)) continue;
      const Admission admission = admit(state_.plan, with_own(overrides, key));
      const Json* own = config::find(admission.config, key);
      if (!admission.invalid.empty() || (own != nullptr && *own == value)) continue;
      keys.emplace_back(effects_.loss(now, choices(admission.config)).mean, key);
    }
    std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (auto& [loss, key] : keys) names.push_back(std::move(key));
    return names;
  }

  // What these overrides are expected to cost; nullopt: more than `most`, or they are refused or may not fit.
  std::optional<Effects::Loss> cost(const Json& overrides, double most) const {
    const Admission admission = admit(state_.plan, overrides);
    if (!admission.invalid.empty() || !fits(admission.config)) return std::nullopt;
    const Effects::Loss loss = effects_.loss(choices(best_.record.config), choices(admission.config));
    return loss.mean <= most ? std::optional(loss) : std::nullopt;
  }

  // The highest peak that is estimated of a trial that completed. The best is one of them.
  static double highest_peak(const StudyState& state, const MemoryEstimates& memory) {
    double highest = 0;
    for (const Trial& trial : state.trials.all()) {
      if (trial.record.outcome != Outcome::completed || trial.model_info) continue;
      if (const auto peak = memory.peak(trial.record.config)) highest = std::max(highest, peak->value);
    }
    return highest;
  }

  // Needs no more memory than what completed, or surely fits.
  bool fits(const Json& config) const {
    const auto peak = memory_.peak(config);
    if (!peak || peak->value <= highest_peak_) return true;
    const auto ceiling = memory_.ceiling(config);
    return ceiling && ceiling->low >= config.value(config::kMicroBatchKey, 0.0);
  }

  Choices choices(const Json& config) const { return choices_of(config, state_.plan.space); }

  const StudyState& state_;
  const Trial& best_;
  const Effects effects_;
  const MemoryEstimates memory_;
  const double highest_peak_;
};

}  // namespace

std::vector<Simpler> simpler_than(const StudyState& state, uint64_t best) {
  std::vector<Simpler> found;
  if (state.plan.keep_all_changes) return found;
  const Simplifier simplifier(state, best);
  for (const double most : {kTolerance, kCautious * kTolerance}) {
    std::optional<Simpler> one = simplifier.within(most);
    if (one && (found.empty() || found.back().overrides != one->overrides)) found.push_back(std::move(*one));
  }
  return found;
}

}  // namespace dsat::host
