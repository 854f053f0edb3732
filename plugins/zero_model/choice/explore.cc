// Looks at what no trial has looked at: where the models are sure, and may be wrong for all that.
//
// The models extrapolate from where the trials are. Before a study ends, and once little is expected of the best
// proposal, each region of the space that no trial has touched is looked at once: a stage near its ceiling, micro
// batches well below the best one, round micro batches, values of the knobs in every stage that can still compete.
#include <algorithm>
#include <cmath>

#include "zero_model/choice/acquisition.h"

namespace dsat::guided {
namespace {

constexpr double kCanCompete = 0.3;  // of the metric's logarithm below the best
constexpr double kNearTop = 0.85;
constexpr size_t kFewValues = 3;
constexpr size_t kLongestStudy = 192;  // trials; an old study has looked everywhere

// A part of a numeric knob's range; of any other knob its value.
int part_of(const Knob& knob, double coordinate) {
  return static_cast<int>(std::floor(knob.numeric ? std::min(2.0, 3 * coordinate) : coordinate));
}

std::string share_text(double share) {
  return "nothing was measured near " + std::to_string(std::lround(100 * share)) + " % of the best micro batch";
}

}  // namespace

// What trials have touched of a stage.
struct Planner::Touched {
  const Arm* best = nullptr;
  double goodness = 0;
  std::vector<Point> points;  // that completed or run
};

Planner::Touched Planner::touched(int stage) const {
  Touched all;
  for (const auto& [point, measured] : beliefs_.points()) {
    if (point.arm->stage != stage || measured.count == 0) continue;
    all.points.push_back(point);
    const double mean = measured.sum_goodness / measured.count;
    if (!point.arm->in_space || (all.best != nullptr && mean <= all.goodness)) continue;
    all.best = point.arm;
    all.goodness = mean;
  }
  for (const Point& point : pending_) {
    if (point.arm->stage == stage) all.points.push_back(point);
  }
  return all;
}

std::optional<Proposal> Planner::look_at(const Arm* arm, int64_t micro_batch, const std::string& why) {
  if (looked_.count({arm->stage, why}) != 0) return std::nullopt;
  const int64_t rank = lattice_.micro_batches().rank_at_or_below(static_cast<double>(micro_batch));
  if (rank < 0) return std::nullopt;
  Proposal proposal;
  proposal.point = {arm, lattice_.micro_batches().at(rank)};
  proposal.fits = beliefs_.probability_of_fitting(proposal.point);
  if (taken(proposal.point) || proposal.fits < 1 - look_risk_ || beliefs_.probability_of_running(*arm) <= 0) {
    return std::nullopt;
  }
  proposal.look = why;
  looked_.emplace(arm->stage, why);
  return proposal;
}

// Micro batches of the best arm and its stage that nothing was measured near.
std::optional<Proposal> Planner::look_along(const Touched& seen, const Arm& arm, int64_t top) {
  const auto untouched = [&](double low, double high) {
    return std::none_of(seen.points.begin(), seen.points.end(), [&](const Point& point) {
      const double at = static_cast<double>(point.micro_batch);
      return at >= low && at <= high;
    });
  };
  const double best = static_cast<double>(anchor_.micro_batch);
  for (const double share : {0.7, 0.45, 0.25}) {
    // What one stage showed of small micro batches holds for the others.
    const bool looked = std::any_of(looked_.begin(), looked_.end(),
                                    [&](const auto& known) { return known.second == share_text(share); });
    if (looked || share * best < 1 || !untouched(0.78 * share * best, 1.25 * share * best)) continue;
    if (auto look = look_at(&arm, std::llround(share * best), share_text(share))) return look;
  }
  for (const int64_t step : {32, 16, 8}) {
    const int64_t round = top / step * step;
    if (static_cast<double>(round) < kNearTop * static_cast<double>(top)) continue;
    const bool known = std::any_of(seen.points.begin(), seen.points.end(), [&](const Point& point) {
      return point.micro_batch % step == 0 &&
             static_cast<double>(point.micro_batch) >= kNearTop * static_cast<double>(top);
    });
    if (known) break;
    if (auto look = look_at(&arm, round, "no multiple of " + std::to_string(step) + " was measured")) return look;
  }
  return std::nullopt;
}

// Values of the knobs that no trial of the stage had.
std::optional<Proposal> Planner::look_across(const Touched& seen, const config::StageSpace& stage, bool numeric) {
  for (size_t axis = 0; axis < stage.axes.size(); ++axis) {
    const auto at = std::find_if(lattice_.knobs().begin(), lattice_.knobs().end(),
                                 [&](const Knob& knob) { return knob.key == stage.axes[axis].key; });
    const size_t knob = static_cast<size_t>(at - lattice_.knobs().begin());
    if (at->numeric ? !numeric : stage.axes[axis].values.size() > kFewValues) continue;
    for (size_t value = 0; value < stage.axes[axis].values.size(); ++value) {
      Configuration flipped{stage.stage, seen.best->choice};
      flipped.choice[axis] = value;
      const Arm* arm = lattice_.arm(flipped);
      const int part = part_of(*at, arm->coordinates[knob]);
      const bool known = std::any_of(seen.points.begin(), seen.points.end(), [&](const Point& point) {
        return part_of(*at, point.arm->coordinates[knob]) == part;
      });
      if (known) continue;
      const int64_t top = top_rank(*arm, lattice_.micro_batches().count() / 2, look_risk_);
      if (top < 0) continue;
      const std::string why = "no trial of this stage had " + at->key + " = " + stage.axes[axis].values[value].dump();
      if (auto look = look_at(arm, lattice_.micro_batches().at(top), why)) return look;
    }
  }
  return std::nullopt;
}

// A stage of which nothing is measured and which may still be the best, at the ceiling that it surely has. What it may
// be is asked at the ceiling that it has if all goes well.
std::optional<Proposal> Planner::look_at_new_stage() {
  constexpr double kDeviations = 2, kIfAllGoesWell = 0.7;
  const std::string why = "nothing was measured in this stage";
  look_risk_ = risk_.usual;
  if (!incumbent_ || !anchor_.arm->in_space) return std::nullopt;
  const search::MicroBatches& batches = lattice_.micro_batches();
  for (const config::StageSpace& stage : lattice_.space().stages) {
    if (looked_.count({stage.stage, why}) != 0) continue;  // asked at every proposal
    const Touched seen = touched(stage.stage);
    const Arm* arm = project(*anchor_.arm, stage);
    const int64_t top = seen.points.empty() ? top_rank(*arm, batches.count() / 2, look_risk_) : -1;
    if (top < 0) continue;
    const int64_t highest = std::max(top, top_rank(*arm, top, kIfAllGoesWell));
    const Belief belief = beliefs_.speed().goodness({{arm, batches.at(highest)}}).front();
    if (belief.mean + kDeviations * std::sqrt(belief.variance) < incumbent_->belief.mean) continue;
    if (auto look = look_at(arm, batches.at(top), why)) return look;
  }
  return std::nullopt;
}

std::optional<Proposal> Planner::look_around(bool boldly) {
  constexpr double kBold = 0.4;
  look_risk_ = boldly ? std::max(kBold, risk_.usual) : risk_.usual;
  if (!incumbent_ || !anchor_.arm->in_space || beliefs_.ended() > kLongestStudy) return std::nullopt;
  const search::MicroBatches& batches = lattice_.micro_batches();
  const Arm& best = *anchor_.arm;
  for (const config::StageSpace& stage : lattice_.space().stages) {
    const Arm* arm = project(best, stage);
    const int64_t top = top_rank(*arm, batches.count() / 2, look_risk_);
    if (top < 0) continue;
    const double high = static_cast<double>(batches.at(top));
    const Touched seen = touched(stage.stage);
    const bool near = std::any_of(seen.points.begin(), seen.points.end(),
                                  [&](const Point& p) { return static_cast<double>(p.micro_batch) >= 0.5 * high; });
    if (near) continue;
    if (auto look = look_at(arm, batches.at(top), "this stage was not measured near its ceiling")) return look;
    // That one ran out of memory.
    if (auto look = look_at(arm, batches.at(top) / 2, "this stage was not measured below its ceiling")) return look;
  }
  const Touched own = touched(best.stage);
  const int64_t top = top_rank(best, batches.rank_at_or_below(static_cast<double>(anchor_.micro_batch)), look_risk_);
  if (top >= 0) {
    if (auto look = look_along(own, best, batches.at(top))) return look;
  }
  for (const config::StageSpace& stage : lattice_.space().stages) {
    Touched seen = touched(stage.stage);
    if (seen.best == nullptr && stage.stage == best.stage) {
      seen.best = &best;
      seen.goodness = incumbent_->belief.mean;
    }
    if (seen.best == nullptr || seen.goodness < incumbent_->belief.mean - kCanCompete) continue;
    if (auto look = look_across(seen, stage, stage.stage == best.stage)) return look;
  }
  return std::nullopt;
}

}  // namespace dsat::guided
