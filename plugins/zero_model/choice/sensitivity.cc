// Reports the effect of each choice: the predicted loss of the metric if one choice of the best trial were different.
// Each choice is represented by the value with the largest effect, among values that a trial had under conditions like
// the best trial's. Other values would be guesses of the model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zero_model/choice/acquisition.h"

namespace dsat::zero_model {
namespace {

// One choice changed, all else as in the best trial.
struct Change {
  std::string choice, from, to;
  Point point;
  std::optional<size_t> axis{};      // of the changed value; nullopt: stage or micro batch
  double effect = 0, deviation = 0;  // on the metric, relative
};

constexpr const char* kMicroBatch = "micro batch";

std::string line_of(const Change& change) {
  return fmt::format("{} {} instead of {}: {:+.1f} % +- {:.1f} %", change.choice, change.to, change.from,
                     100 * change.effect, 100 * change.deviation);
}

// Was the changed value measured near the best, at half to twice its micro batch?
bool was_compared(const Change& change, const std::map<Point, Surrogate::PointRecord>& points, int64_t best) {
  const Arm& wanted = *change.point.arm;
  const int64_t least = change.choice == kMicroBatch ? best / 4 : (best + 1) / 2;
  const int64_t most = change.choice == kMicroBatch ? 3 * best / 4 : 2 * best;
  return std::any_of(points.begin(), points.end(), [&](const auto& known) {
    const Arm& arm = *known.first.arm;
    if (known.second.count == 0 || arm.stage != wanted.stage) return false;
    if (known.first.micro_batch < least || known.first.micro_batch > most) return false;
    return !change.axis || (arm.in_space && arm.choice[*change.axis] == wanted.choice[*change.axis]);
  });
}

// The noise variance of one trial, from repeated configurations; 0: there are none.
double variance_of_repeats(const std::map<Point, Surrogate::PointRecord>& points) {
  double squares = 0;
  int degrees = 0;
  for (const auto& [point, record] : points) {
    squares += record.squares;
    degrees += std::max(0, record.count - 1);
  }
  return degrees > 0 ? squares / degrees : 0;
}

// The best measured arm of a stage at half to twice the best micro batch; nullptr: none.
const Arm* best_arm_near(const std::map<Point, Surrogate::PointRecord>& points, int stage, int64_t best) {
  const Arm* arm = nullptr;
  double most = 0;
  for (const auto& [point, record] : points) {
    if (record.count == 0 || !point.arm->in_space || point.arm->stage != stage) continue;
    if (point.micro_batch < (best + 1) / 2 || point.micro_batch > 2 * best) continue;
    if (arm != nullptr && record.objective() <= most) continue;
    arm = point.arm;
    most = record.objective();
  }
  return arm;
}

// The arm of another stage with the best trial's values. Axes that the best trial's stage lacks have the values of
// `measured`, because with other values nobody compared the arm.
const Arm* arm_of_stage(ModelSpace& space, const Arm& best, const Arm& measured) {
  const std::vector<config::Axis>& own = space.tuning_space().stage(best.stage)->axes;
  const std::vector<config::Axis>& axes = space.tuning_space().stage(measured.stage)->axes;
  Configuration moved{measured.stage, measured.choice};
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].key != axes[axis].key) continue;
      const auto at = std::find(axes[axis].values.begin(), axes[axis].values.end(), own[i].values[best.choice[i]]);
      if (at != axes[axis].values.end()) moved.choice[axis] = static_cast<size_t>(at - axes[axis].values.begin());
    }
  }
  return space.arm(moved);
}

// Adds every other value of every axis of the arm's stage.
void add_other_values(ModelSpace& space, const Point& best, std::vector<Change>& changes) {
  const Arm& arm = *best.arm;
  const std::vector<config::Axis>& axes = space.tuning_space().stage(arm.stage)->axes;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (size_t value = 0; value < axes[axis].values.size(); ++value) {
      if (value == arm.choice[axis]) continue;
      Configuration other{arm.stage, arm.choice};
      other.choice[axis] = value;
      changes.push_back({axes[axis].key,
                         axes[axis].values[arm.choice[axis]].dump(),
                         axes[axis].values[value].dump(),
                         {space.arm(other), best.micro_batch},
                         axis});
    }
  }
}

void add_half_the_micro_batch(ModelSpace& space, const Point& best, std::vector<Change>& changes) {
  const int64_t half = space.micro_batches().rank_at_or_below(static_cast<double>(best.micro_batch) / 2);
  if (half < 0) return;
  const int64_t smaller = space.micro_batches().at(half);
  changes.push_back({kMicroBatch, std::to_string(best.micro_batch), std::to_string(smaller), {best.arm, smaller}});
}

// An effect is the difference of two measurements. The model can take noise for an effect, so the variance of repeated
// trials and of the fit's residuals counts as noise.
void predict_effects(const Surrogate& surrogate, const Prediction& best, std::vector<Change>& changes) {
  std::vector<Point> points;
  for (const Change& change : changes) points.push_back(change.point);
  const SpeedModel& speed = surrogate.speed();
  const std::vector<Prediction> predictions = speed.predict(points);
  const double noise =
      std::max({speed.noise_variance(), speed.left_out_variance(), variance_of_repeats(surrogate.points())});
  const double of_both = best.variance + 2 * noise;
  for (size_t i = 0; i < changes.size(); ++i) {
    const double ratio = std::exp(predictions[i].mean - best.mean);
    changes[i].effect = ratio - 1;
    changes[i].deviation = std::max(1.0, ratio) * std::sqrt(predictions[i].variance + of_both);
  }
}

// The largest effect comes first. Each choice is reported once, by its first change.
std::vector<std::string> lines_of(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return std::abs(a.effect) > std::abs(b.effect); });
  std::vector<std::string> lines, reported;
  for (const Change& change : changes) {
    if (std::find(reported.begin(), reported.end(), change.choice) != reported.end()) continue;
    reported.push_back(change.choice);
    lines.push_back(line_of(change));
  }
  return lines;
}

}  // namespace

std::vector<std::string> Acquisition::sensitivity() {
  const std::optional<Surrogate::Incumbent> best = surrogate_.incumbent();
  if (!best || !best->point.arm->in_space) return {};
  const Arm& arm = *best->point.arm;
  const int64_t micro_batch = best->point.micro_batch;
  std::vector<Change> changes;
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    const Arm* measured = best_arm_near(surrogate_.points(), stage.stage, micro_batch);
    if (stage.stage == arm.stage || measured == nullptr) continue;
    const Point moved{arm_of_stage(space_, arm, *measured), micro_batch};
    changes.push_back({"ZeRO stage", std::to_string(arm.stage), std::to_string(stage.stage), moved});
  }
  add_other_values(space_, best->point, changes);
  add_half_the_micro_batch(space_, best->point, changes);
  const auto is_guess = [&](const Change& c) { return !was_compared(c, surrogate_.points(), micro_batch); };
  changes.erase(std::remove_if(changes.begin(), changes.end(), is_guess), changes.end());
  predict_effects(surrogate_, best->prediction, changes);
  return lines_of(std::move(changes));
}

}  // namespace dsat::zero_model
