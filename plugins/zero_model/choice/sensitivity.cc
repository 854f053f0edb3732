// Reports what each choice is worth: what the metric would lose, by the models, if one choice of the best trial were
// another. Only the value that differs most stands for its choice.
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
  double effect = 0, deviation = 0;  // on the metric, relative
};

std::string line_of(const Change& change) {
  return fmt::format("{} {} instead of {}: {:+.1f} % +- {:.1f} %", change.choice, change.to, change.from,
                     100 * change.effect, 100 * change.deviation);
}

}  // namespace

std::vector<std::string> Acquisition::sensitivity() {
  const std::optional<Surrogate::Incumbent> best = surrogate_.incumbent();
  if (!best || !best->point.arm->in_space) return {};
  const Arm& arm = *best->point.arm;
  const int64_t micro_batch = best->point.micro_batch;
  const config::StageSpace& own = *space_.tuning_space().stage(arm.stage);
  std::vector<Change> changes;
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    if (stage.stage == arm.stage) continue;
    changes.push_back(
        {"ZeRO stage", std::to_string(arm.stage), std::to_string(stage.stage), {project(arm, stage), micro_batch}});
  }
  for (size_t axis = 0; axis < own.axes.size(); ++axis) {
    for (size_t value = 0; value < own.axes[axis].values.size(); ++value) {
      if (value == arm.choice[axis]) continue;
      Configuration other{arm.stage, arm.choice};
      other.choice[axis] = value;
      changes.push_back({own.axes[axis].key,
                         own.axes[axis].values[arm.choice[axis]].dump(),
                         own.axes[axis].values[value].dump(),
                         {space_.arm(other), micro_batch}});
    }
  }
  const int64_t half = space_.micro_batches().rank_at_or_below(static_cast<double>(micro_batch) / 2);
  if (half >= 0) {
    const int64_t smaller = space_.micro_batches().at(half);
    changes.push_back({"micro batch", std::to_string(micro_batch), std::to_string(smaller), {&arm, smaller}});
  }
  std::vector<Point> points;
  for (const Change& change : changes) points.push_back(change.point);
  const std::vector<Prediction> predictions = surrogate_.speed().predict(points);
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i].effect = std::exp(predictions[i].mean - best->prediction.mean) - 1;
    changes[i].deviation = std::exp(predictions[i].mean - best->prediction.mean) * std::sqrt(predictions[i].variance);
  }
  // What matters most comes first: the first change of each choice is the one to report.
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

}  // namespace dsat::zero_model
