// What a study found out about its knobs: what the metric would lose if one choice of the best trial were another.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "zero_model/choice/acquisition.h"

namespace dsat::guided {
namespace {

// One choice changed, all else as in the best trial.
struct Change {
  std::string choice, from, to;
  Point point;
  double effect = 0, deviation = 0;  // of the metric, relative
};

std::string line_of(const Change& change) {
  char text[96];
  std::snprintf(text, sizeof text, ": %+.1f %% +- %.1f %%", 100 * change.effect, 100 * change.deviation);
  return change.choice + " " + change.to + " instead of " + change.from + text;
}

}  // namespace

std::vector<std::string> Planner::effects() {
  const std::optional<Beliefs::Best> best = beliefs_.best();
  if (!best || !best->point.arm->in_space) return {};
  const Arm& arm = *best->point.arm;
  const int64_t micro_batch = best->point.micro_batch;
  const config::StageSpace& own = *lattice_.space().stage(arm.stage);
  std::vector<Change> changes;
  for (const config::StageSpace& stage : lattice_.space().stages) {
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
                         {lattice_.arm(other), micro_batch}});
    }
  }
  const int64_t half = lattice_.micro_batches().rank_at_or_below(static_cast<double>(micro_batch) / 2);
  if (half >= 0) {
    const int64_t smaller = lattice_.micro_batches().at(half);
    changes.push_back({"micro batch", std::to_string(micro_batch), std::to_string(smaller), {&arm, smaller}});
  }
  std::vector<Point> points;
  for (const Change& change : changes) points.push_back(change.point);
  const std::vector<Belief> beliefs = beliefs_.speed().goodness(points);
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i].effect = std::exp(beliefs[i].mean - best->belief.mean) - 1;
    changes[i].deviation = std::exp(beliefs[i].mean - best->belief.mean) * std::sqrt(beliefs[i].variance);
  }
  // Of each choice the value that differs most; what matters most comes first.
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return std::abs(a.effect) > std::abs(b.effect); });
  std::vector<std::string> lines, told;
  for (const Change& change : changes) {
    if (std::find(told.begin(), told.end(), change.choice) != told.end()) continue;
    told.push_back(change.choice);
    lines.push_back(line_of(change));
  }
  return lines;
}

}  // namespace dsat::guided
