// Explores: proposes points in regions that no trial has touched, where the models are sure and may be wrong.
//
// The models extrapolate from where the trials are. Before a study ends, and once little is expected of the best
// proposal, each region of the space that no trial has touched is tried once: a stage near its ceiling, micro
// batches well below the best one, round micro batches, values of the axes in every stage that can still compete.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zero_model/choice/acquisition.h"

namespace dsat::zero_model {
namespace {

constexpr double kCanCompete = 0.3;  // how far below the best objective a stage may be
constexpr double kNearTop = 0.85;
constexpr size_t kFewValues = 3;
constexpr size_t kLongestStudy = 192;  // trials; a longer study has been everywhere

// The third of a numeric axis's range in which a coordinate lies; on any other axis, the value itself.
int part_of(const ModelAxis& axis, double coordinate) {
  return static_cast<int>(std::floor(axis.numeric ? std::min(2.0, 3 * coordinate) : coordinate));
}

std::string share_text(double share) {
  return fmt::format("nothing was measured near {} % of the best micro batch", std::lround(100 * share));
}

}  // namespace

// What trials have touched of a stage.
struct Acquisition::StageCoverage {
  const Arm* best = nullptr;
  double objective = 0;
  std::vector<Point> points;  // that completed or are pending
};

Acquisition::StageCoverage Acquisition::coverage(int stage) const {
  StageCoverage all;
  for (const auto& [point, measured] : surrogate_.points()) {
    if (point.arm->stage != stage || measured.count == 0) continue;
    all.points.push_back(point);
    const double mean = measured.objective();
    if (!point.arm->in_space || (all.best != nullptr && mean <= all.objective)) continue;
    all.best = point.arm;
    all.objective = mean;
  }
  for (const Point& point : pending_) {
    if (point.arm->stage == stage) all.points.push_back(point);
  }
  return all;
}

std::optional<Proposal> Acquisition::explore_at(const Arm* arm, int64_t micro_batch, const std::string& why) {
  if (explored_.count({arm->stage, why}) != 0) return std::nullopt;
  const int64_t rank = space_.micro_batches().rank_at_or_below(static_cast<double>(micro_batch));
  if (rank < 0) return std::nullopt;
  Proposal proposal;
  proposal.point = {arm, space_.micro_batches().at(rank)};
  proposal.fit_probability = surrogate_.probability_of_fitting(proposal.point);
  if (taken(proposal.point) || proposal.fit_probability < 1 - exploration_risk_ ||
      surrogate_.probability_of_running(*arm) <= 0) {
    return std::nullopt;
  }
  proposal.exploration = why;
  explored_.emplace(arm->stage, why);
  return proposal;
}

// Micro batches of the best arm and its stage that nothing was measured near.
std::optional<Proposal> Acquisition::explore_micro_batches(const StageCoverage& seen, const Arm& arm, int64_t top) {
  const auto untouched = [&](double low, double high) {
    return std::none_of(seen.points.begin(), seen.points.end(), [&](const Point& point) {
      const double at = static_cast<double>(point.micro_batch);
      return at >= low && at <= high;
    });
  };
  const double best = static_cast<double>(anchor_.micro_batch);
  for (const double share : {0.7, 0.45, 0.25}) {
    // What one stage showed of small micro batches holds for the others.
    const bool looked = std::any_of(explored_.begin(), explored_.end(),
                                    [&](const auto& known) { return known.second == share_text(share); });
    if (looked || share * best < 1 || !untouched(0.78 * share * best, 1.25 * share * best)) continue;
    if (auto look = explore_at(&arm, std::llround(share * best), share_text(share))) return look;
  }
  for (const int64_t step : {32, 16, 8}) {
    const int64_t round = top / step * step;
    if (static_cast<double>(round) < kNearTop * static_cast<double>(top)) continue;
    const bool known = std::any_of(seen.points.begin(), seen.points.end(), [&](const Point& point) {
      return point.micro_batch % step == 0 &&
             static_cast<double>(point.micro_batch) >= kNearTop * static_cast<double>(top);
    });
    if (known) break;
    if (auto look = explore_at(&arm, round, fmt::format("no multiple of {} was measured", step))) return look;
  }
  return std::nullopt;
}

// Values of the axes that no trial of the stage had.
std::optional<Proposal> Acquisition::explore_values(const StageCoverage& seen, const config::StageSpace& stage,
                                                    bool numeric) {
  for (size_t axis = 0; axis < stage.axes.size(); ++axis) {
    const auto at = std::find_if(space_.axes().begin(), space_.axes().end(),
                                 [&](const ModelAxis& known) { return known.key == stage.axes[axis].key; });
    const size_t coordinate = static_cast<size_t>(at - space_.axes().begin());
    if (at->numeric ? !numeric : stage.axes[axis].values.size() > kFewValues) continue;
    for (size_t value = 0; value < stage.axes[axis].values.size(); ++value) {
      Configuration flipped{stage.stage, seen.best->choice};
      flipped.choice[axis] = value;
      const Arm* arm = space_.arm(flipped);
      const int part = part_of(*at, arm->coordinates[coordinate]);
      const bool known = std::any_of(seen.points.begin(), seen.points.end(), [&](const Point& point) {
        return part_of(*at, point.arm->coordinates[coordinate]) == part;
      });
      if (known) continue;
      const int64_t top = top_rank(*arm, space_.micro_batches().count() / 2, exploration_risk_);
      if (top < 0) continue;
      const std::string why =
          fmt::format("no trial of this stage had {} = {}", at->key, stage.axes[axis].values[value].dump());
      if (auto look = explore_at(arm, space_.micro_batches().at(top), why)) return look;
    }
  }
  return std::nullopt;
}

// An untouched stage is tried at the ceiling that it surely has. Whether it may be the best is asked at the ceiling
// that it has if all goes well.
std::optional<Proposal> Acquisition::explore_new_stage() {
  constexpr double kDeviations = 2, kIfAllGoesWell = 0.7;
  const std::string why = "nothing was measured in this stage";
  exploration_risk_ = risk_.usual;
  if (!incumbent_ || !anchor_.arm->in_space) return std::nullopt;
  const search::MicroBatches& batches = space_.micro_batches();
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    if (explored_.count({stage.stage, why}) != 0) continue;  // cheap: this runs at every proposal
    const StageCoverage seen = coverage(stage.stage);
    const Arm* arm = project(*anchor_.arm, stage);
    const int64_t top = seen.points.empty() ? top_rank(*arm, batches.count() / 2, exploration_risk_) : -1;
    if (top < 0) continue;
    const int64_t highest = std::max(top, top_rank(*arm, top, kIfAllGoesWell));
    const Prediction prediction = surrogate_.speed().predict({{arm, batches.at(highest)}}).front();
    if (prediction.mean + kDeviations * std::sqrt(prediction.variance) < incumbent_->prediction.mean) continue;
    if (auto look = explore_at(arm, batches.at(top), why)) return look;
  }
  return std::nullopt;
}

// Each stage is tried near its ceiling, and below it where the ceiling ran out of memory.
std::optional<Proposal> Acquisition::explore_ceilings() {
  const search::MicroBatches& batches = space_.micro_batches();
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    const Arm* arm = project(*anchor_.arm, stage);
    const int64_t top = top_rank(*arm, batches.count() / 2, exploration_risk_);
    if (top < 0) continue;
    const double high = static_cast<double>(batches.at(top));
    const StageCoverage seen = coverage(stage.stage);
    const bool near = std::any_of(seen.points.begin(), seen.points.end(),
                                  [&](const Point& p) { return static_cast<double>(p.micro_batch) >= 0.5 * high; });
    if (near) continue;
    if (auto look = explore_at(arm, batches.at(top), "this stage was not measured near its ceiling")) return look;
    // The ceiling ran out of memory.
    if (auto look = explore_at(arm, batches.at(top) / 2, "this stage was not measured below its ceiling")) return look;
  }
  return std::nullopt;
}

std::optional<Proposal> Acquisition::explore(bool boldly) {
  constexpr double kBold = 0.4;
  exploration_risk_ = boldly ? std::max(kBold, risk_.usual) : risk_.usual;
  if (!incumbent_ || !anchor_.arm->in_space || surrogate_.ended() > kLongestStudy) return std::nullopt;
  const search::MicroBatches& batches = space_.micro_batches();
  if (auto look = explore_ceilings()) return look;
  const Arm& best = *anchor_.arm;
  const StageCoverage own = coverage(best.stage);
  const int64_t top =
      top_rank(best, batches.rank_at_or_below(static_cast<double>(anchor_.micro_batch)), exploration_risk_);
  if (top >= 0) {
    if (auto look = explore_micro_batches(own, best, batches.at(top))) return look;
  }
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    StageCoverage seen = coverage(stage.stage);
    if (seen.best == nullptr && stage.stage == best.stage) {
      seen.best = &best;
      seen.objective = incumbent_->prediction.mean;
    }
    if (seen.best == nullptr || seen.objective < incumbent_->prediction.mean - kCanCompete) continue;
    if (auto look = explore_values(seen, stage, stage.stage == best.stage)) return look;
  }
  return std::nullopt;
}

}  // namespace dsat::zero_model
