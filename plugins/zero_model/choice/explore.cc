// Explores: proposes points where the models are certain and may be wrong.
//
// The models extrapolate from the trials, and a wrong model is wrong with confidence. So a prediction is trusted less
// the farther a point lies from the measured ones: in micro batch (waves, tiles, throttling), in its stage, in the
// values of its axes. When the best proposal promises little, the expected improvement under this doubt decides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "cost/posterior/normal.h"
#include "zero_model/choice/acquisition.h"

namespace dsat::zero_model {
namespace {

constexpr double kEven = 0.5;          // as likely as not
constexpr double kCanCompete = 0.3;    // how far a stage may be below the best objective
constexpr size_t kLongestStudy = 192;  // trials; a longer study has tried every region

double square(double x) { return x * x; }

// The part of an axis that a coordinate lies in: a third of a numeric axis's range, else the value itself.
int part_of(const ModelAxis& axis, double coordinate) {
  return static_cast<int>(std::floor(axis.numeric ? std::min(2.0, 3 * coordinate) : coordinate));
}

double distance(int64_t a, int64_t b) { return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b))); }

}  // namespace

// The points that completed or are pending.
struct Acquisition::Coverage {
  std::vector<Point> points;
  std::map<int, std::pair<const Arm*, double>> best;  // of each stage: arm and objective
};

Acquisition::Coverage Acquisition::coverage() const {
  Coverage all;
  for (const auto& [point, measured] : surrogate_.points()) {
    if (measured.count == 0) continue;
    all.points.push_back(point);
    const double mean = measured.objective();
    const auto it = all.best.find(point.arm->stage);
    if (!point.arm->in_space || (it != all.best.end() && mean <= it->second.second)) continue;
    all.best[point.arm->stage] = {point.arm, mean};
  }
  all.points.insert(all.points.end(), pending_.begin(), pending_.end());
  return all;
}

// An axis of which none of the trials had a value near the arm's; nullptr: none.
const ModelAxis* Acquisition::unseen_axis(const std::vector<Point>& trials, const Arm& arm) const {
  for (size_t i = 0; i < space_.axes().size(); ++i) {
    const ModelAxis& axis = space_.axes()[i];
    const bool is_known = std::any_of(trials.begin(), trials.end(), [&](const Point& other) {
      return other.arm->stage == arm.stage &&
             part_of(axis, other.arm->coordinates[i]) == part_of(axis, arm.coordinates[i]);
    });
    if (!is_known) return &axis;
  }
  return nullptr;
}

// The same for values themselves. Only trials count that differ in few parts, since values may need each other, and
// those that failed, too.
const ModelAxis* Acquisition::untried_axis(const Arm& arm) const {
  constexpr int kFew = 2;
  const std::vector<ModelAxis>& axes = space_.axes();
  std::vector<bool> known(axes.size(), false);
  const auto add = [&](const Point& other) {
    if (other.arm->stage != arm.stage) return;
    int apart = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      apart += part_of(axes[i], other.arm->coordinates[i]) != part_of(axes[i], arm.coordinates[i]) ? 1 : 0;
    }
    for (size_t i = 0; i < axes.size() && apart <= kFew; ++i) {
      known[i] = known[i] || other.arm->coordinates[i] == arm.coordinates[i];
    }
  };
  for (const auto& [point, known_point] : surrogate_.points()) add(point);
  for (const Point& point : pending_) add(point);
  const auto at = std::find(known.begin(), known.end(), false);
  return at == known.end() ? nullptr : &axes[static_cast<size_t>(at - known.begin())];
}

// Deviations that the models do not include, by the distance to the nearest trial.
Acquisition::Doubt Acquisition::doubt(const Coverage& seen, const Point& point) const {
  constexpr double kJump = 0.03, kPerDoubling = 0.12, kMost = 0.2;  // of the micro batch: waves and tiles; throttling
  constexpr double kJumpWithin = 0.08;                              // doublings
  constexpr double kNewStage = 0.1, kStage = 0.04;
  constexpr double kValue = 0.03;
  double nearest = std::numeric_limits<double>::infinity(), in_stage = nearest;
  for (const Point& other : seen.points) {
    const double away = distance(point.micro_batch, other.micro_batch);
    nearest = std::min(nearest, away);
    if (other.arm->stage == point.arm->stage) in_stage = std::min(in_stage, away);
  }
  Doubt doubt;
  // A jump may lie anywhere. The nearer the next trial is, the less likely a jump lies between the two.
  const auto jump = [](double away) { return 1 - std::exp(-away / kJumpWithin); };
  doubt.micro_batch = std::min(kMost, kJump * jump(nearest) + kPerDoubling * nearest);
  doubt.stage = std::isinf(in_stage) ? kNewStage : std::min(kNewStage, kStage * (jump(in_stage) + in_stage));
  if (!std::isinf(in_stage)) doubt.axis = unseen_axis(seen.points, *point.arm);
  if (doubt.axis != nullptr) doubt.axes = kValue;
  return doubt;
}

// Micro batches to try beside the best one: shares and multiples of it, round sizes, its direct neighbours, and the
// ceiling with the sizes just below.
std::vector<int64_t> Acquisition::looks_of(const Arm& arm) const {
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t best = anchor_.micro_batch;
  const int64_t top = top_rank(arm, batches.rank_at_or_below(static_cast<double>(best)), exploration_risk_);
  if (top < 0) return {};
  std::set<int64_t> looks;
  const auto add = [&](double wanted) {
    const int64_t rank = std::min(top, batches.rank_at_or_below(wanted));
    if (rank >= 0) looks.insert(batches.at(rank));
  };
  const double at = static_cast<double>(best), ceiling = static_cast<double>(batches.at(top));
  for (const double share : {0.25, 0.35, 0.5, 0.6, 0.7, 0.75, 0.8, 0.875, 0.94, 1.0, 1.06, 1.125, 1.25, 1.5, 2.0}) {
    add(share * at);
    for (const double tile : {8.0, 32.0}) {
      if (share * at >= 2 * tile) add(std::floor(share * at / tile) * tile);
    }
  }
  for (int by = -3; by <= 3; ++by) add(at + by);
  for (const double share : {1.0, 0.97, 0.94, 0.9}) add(share * ceiling);
  return {looks.begin(), looks.end()};
}

// The best arm moved to each stage, the best arm of each stage, and its neighbours with one value changed.
std::vector<const Arm*> Acquisition::arms_to_look_at(const Coverage& seen) {
  std::set<const Arm*> chosen;
  std::vector<const Arm*> arms;
  const auto add = [&](const Arm* arm) {
    if (chosen.insert(arm).second) arms.push_back(arm);
  };
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    const bool same_stage = stage.stage == anchor_.arm->stage;
    add(same_stage ? anchor_.arm : project(*anchor_.arm, stage));
    const auto own = seen.best.find(stage.stage);
    if (own == seen.best.end() || own->second.second < incumbent_->prediction.mean - kCanCompete) continue;
    const Arm* best = own->second.first;
    add(best);
    for (const Arm* next : neighbours(same_stage ? *anchor_.arm : *best)) add(next);
  }
  return arms;
}

std::string Acquisition::why(const Doubt& doubt, const Point& point) const {
  constexpr double kNone = 0.005;
  if (std::max({doubt.micro_batch, doubt.stage, doubt.axes}) < kNone) return "the ceiling is not known here";
  if (doubt.stage >= doubt.micro_batch && doubt.stage >= doubt.axes) {
    return fmt::format("nothing was measured in stage {} near this micro batch", point.arm->stage);
  }
  if (doubt.micro_batch >= doubt.axes) return "no stage was measured near this micro batch";
  return fmt::format("no trial of this stage had {} near this value", doubt.axis->key);
}

std::optional<Proposal> Acquisition::explore() {
  constexpr double kWorthALook = 5e-4;
  // Late in a study an out-of-memory trial costs little, and shows where a ceiling is.
  constexpr double kCheaper = 0.4;
  exploration_risk_ = risk_.daring;
  if (!incumbent_ || !anchor_.arm->in_space || surrogate_.ended() > kLongestStudy) return std::nullopt;
  const Coverage seen = coverage();
  std::vector<Point> points;
  for (const Arm* arm : arms_to_look_at(seen)) {
    // A value that has only failed is no place to look for the effect of a size.
    if (surrogate_.probability_of_running({arm, anchor_.micro_batch}) < kEven) continue;
    for (const int64_t micro_batch : looks_of(*arm)) {
      if (!is_excluded({arm, micro_batch})) points.push_back({arm, micro_batch});
    }
  }
  Risk cheaper = risk_;
  cheaper.price *= kCheaper;
  std::optional<Proposal> best;
  for (Proposal& look : score(points)) {
    if (look.fit_probability < 1 - exploration_risk_) continue;
    const Doubt doubtful = doubt(seen, look.point);
    const double deviation = std::sqrt(square(look.deviation) + square(doubtful.micro_batch) + square(doubtful.stage) +
                                       square(doubtful.axes));
    if (deviation == look.deviation && look.fit_probability > 1 - risk_.usual) continue;
    look.gain = expected_improvement(look.improvement, deviation) * look.fit_probability *
                surrogate_.probability_of_running(look.point);
    look.value = cheaper.value_of(look.gain, look.fit_probability);
    look.deviation = deviation;
    if (look.value < kWorthALook || (best && !better(look, *best))) continue;
    look.exploration = why(doubtful, look.point);
    best = look;
  }
  return best;
}

// Climbs from the anchor's values and from those of the stage's best trial, one value at a time.
std::optional<Point> Acquisition::best_guess(const config::StageSpace& stage, const Coverage& seen) {
  std::optional<Proposal> best;
  const auto climb = [&](const std::vector<const Arm*>& arms) {
    const std::optional<Proposal> before = best;
    std::vector<Point> points;
    for (const Arm* arm : arms) add_ceilings(*arm, points);
    for (const Proposal& at : score(points)) {
      if (!best || at.improvement > best->improvement) best = at;
    }
    return best && (!before || best->improvement > before->improvement);
  };
  climb({project(*anchor_.arm, stage)});
  if (const auto own = seen.best.find(stage.stage); own != seen.best.end()) climb({own->second.first});
  while (best && climb(neighbours(*best->point.arm))) {
  }
  return best ? std::optional(best->point) : std::nullopt;
}

// The sizes at which an arm is compared before an end: the largest one that fits as likely as not, and the best
// trial's, unless that surely does not fit.
void Acquisition::add_ceilings(const Arm& arm, std::vector<Point>& points) const {
  constexpr double kHardly = 0.9;
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t hint = batches.rank_at_or_below(static_cast<double>(anchor_.micro_batch));
  const int64_t even = top_rank(arm, hint, kEven), best = std::min(hint, top_rank(arm, hint, kHardly));
  for (const int64_t rank : {even, best}) {
    const Point point{&arm, batches.at(std::max<int64_t>(0, rank))};
    if (rank >= 0 && !is_excluded(point) && surrogate_.probability_of_running(point) >= kEven) points.push_back(point);
  }
}

// The arms that are one value away from a good one and have a value that no trial like them had, and, since a value may
// need another one to fit, their neighbours, unless the stage has too many.
std::vector<Point> Acquisition::untried_points(const Coverage& seen) {
  constexpr size_t kMostNeighbours = 64;
  std::set<const Arm*> arms;
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    std::vector<const Arm*> good{project(*anchor_.arm, stage)};
    if (const auto own = seen.best.find(stage.stage); own != seen.best.end()) add_unique(good, own->second.first);
    for (const Arm* arm : good) {
      arms.insert(arm);
      for (const Arm* next : neighbours(*arm)) {
        if (untried_axis(*next) == nullptr) continue;
        arms.insert(next);
        if (neighbours(*arm).size() > kMostNeighbours) continue;
        arms.insert(neighbours(*next).begin(), neighbours(*next).end());
      }
    }
  }
  std::vector<Point> points;
  for (const Arm* arm : arms) {
    if (untried_axis(*arm) != nullptr) add_ceilings(*arm, points);
  }
  return points;
}

// The models call some values slow that no trial has had, and stages that were seen with bad values only. A stage's
// best guess is measured whatever they say of it; a value, if a usual error of a model makes it the best.
std::optional<Proposal> Acquisition::explore_before_end() {
  constexpr double kDeviations = 2, kValue = 0.08;
  constexpr int kGuesses = 2;  // a first one may run out of memory
  if (!incumbent_ || !anchor_.arm->in_space || surrogate_.ended() > kLongestStudy) return std::nullopt;
  const Coverage seen = coverage();
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    if (guesses_[stage.stage] >= kGuesses) continue;
    const std::optional<Point> guess = best_guess(stage, seen);
    const bool is_seen = seen.best.count(stage.stage) != 0;
    if (!guess || (is_seen && untried_axis(*guess->arm) == nullptr)) continue;
    Proposal look = score({*guess}).front();
    ++guesses_[stage.stage];
    look.exploration = fmt::format("the best guess of stage {} was not measured", stage.stage);
    return look;
  }
  std::optional<Proposal> best;
  for (Proposal& look : score(untried_points(seen))) {
    look.deviation = std::sqrt(square(look.deviation) + square(kValue));
    if (look.improvement + kDeviations * look.deviation < 0) continue;
    look.value = look.gain = expected_improvement(look.improvement, look.deviation) * look.fit_probability *
                             surrogate_.probability_of_running(look.point);
    if (!best || better(look, *best)) best = look;
  }
  if (best) {
    best->exploration = fmt::format("no trial like this had this {}", untried_axis(*best->point.arm)->key);
  }
  return best;
}

// A stage without trials is tried at its sure ceiling, or, where that is too small to compete, at one that fits as
// likely as not: the doubt is about the stage then, and a smaller micro batch would hardly be surer. The prediction at
// its possible ceiling decides whether it may be the best. If a smaller micro batch is always better, both use the best
// trial's micro batch.
std::optional<Proposal> Acquisition::explore_new_stage() {
  constexpr double kDeviations = 2, kIfAllGoesWell = 0.7;
  exploration_risk_ = risk_.usual;
  const auto speed = [&](const Arm* arm, int64_t rank) {
    return surrogate_.speed().predict({{arm, space_.micro_batches().at(rank)}}).front();
  };
  if (!incumbent_ || !anchor_.arm->in_space) return std::nullopt;
  const search::MicroBatches& batches = space_.micro_batches();
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    if (explored_.count(stage.stage) != 0) continue;  // a cheap check, because this runs at every proposal
    const auto in_stage = [&](const Point& point) { return point.arm->stage == stage.stage; };
    const bool touched = std::any_of(pending_.begin(), pending_.end(), in_stage) ||
                         std::any_of(surrogate_.points().begin(), surrogate_.points().end(), [&](const auto& known) {
                           return in_stage(known.first) && known.second.count > 0;
                         });
    const Arm* arm = project(*anchor_.arm, stage);
    int64_t top = touched ? -1 : top_rank(*arm, batches.count() / 2, exploration_risk_);
    if (top < 0) continue;
    if (speed(arm, top).mean < incumbent_->prediction.mean - kCanCompete) top = top_rank(*arm, top, kEven);
    int64_t highest = std::max(top, top_rank(*arm, top, kIfAllGoesWell));
    if (smaller_is_better()) {
      const int64_t best = batches.rank_at_or_below(static_cast<double>(anchor_.micro_batch));
      highest = top = std::min(top, std::max<int64_t>(0, best));
    }
    const Prediction prediction = speed(arm, highest);
    if (prediction.mean + kDeviations * std::sqrt(prediction.variance) < incumbent_->prediction.mean) continue;
    const Point point{arm, batches.at(top)};
    if (is_excluded(point) || surrogate_.probability_of_running(point) < kEven) continue;
    explored_.insert(stage.stage);
    Proposal look;
    look.point = point;
    look.fit_probability = surrogate_.probability_of_fitting(point);
    look.exploration = "nothing was measured in this stage";
    return look;
  }
  return std::nullopt;
}

// The largest multiple of 8 at or below a micro batch. Hardware may compute in such tiles (NVIDIA's guides for matrix
// products and tensor cores), and the models cannot know before a multiple is measured.
std::optional<int64_t> Acquisition::multiple_below(int64_t micro_batch) const {
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t rounded = micro_batch / kTile * kTile;
  const int64_t rank = batches.rank_at_or_below(static_cast<double>(rounded));
  if (rounded < kLeastMultiple || rank < 0 || batches.at(rank) != rounded) return std::nullopt;
  return rounded;
}

bool Acquisition::knows_multiple(double least) const {
  const auto is_multiple = [least](const Point& point) {
    return point.micro_batch % kTile == 0 && static_cast<double>(point.micro_batch) >= least;
  };
  const auto& measured = surrogate_.points();
  return std::any_of(measured.begin(), measured.end(),
                     [&](const auto& known) { return known.second.count > 0 && is_multiple(known.first); }) ||
         std::any_of(pending_.begin(), pending_.end(), is_multiple);
}

std::optional<Proposal> Acquisition::explore_round_size() {
  constexpr double kNear = 0.75;
  if (!incumbent_ || !anchor_.arm->in_space) return std::nullopt;
  const std::optional<int64_t> wanted = multiple_below(anchor_.micro_batch);
  if (!wanted || knows_multiple(kNear * static_cast<double>(*wanted))) return std::nullopt;
  Proposal look;
  look.point = {anchor_.arm, *wanted};
  if (is_excluded(look.point)) return std::nullopt;
  look.fit_probability = surrogate_.probability_of_fitting(look.point);
  look.exploration = "no multiple of 8 near the best micro batch was measured";
  return look;
}

// The trials of a stage.
struct Acquisition::StageTrials {
  int64_t largest = 0;  // largest micro batch that completed; 0: none
  bool failed = false, pending = false;
};

std::map<int, Acquisition::StageTrials> Acquisition::stage_trials() const {
  std::map<int, StageTrials> stages;
  for (const auto& [point, known] : surrogate_.points()) {
    StageTrials& stage = stages[point.arm->stage];
    if (known.count > 0) stage.largest = std::max(stage.largest, point.micro_batch);
    stage.failed |= known.count == 0;
  }
  for (const Point& point : pending_) stages[point.arm->stage].pending = true;
  return stages;
}

// The arm of a stage whose numeric values all lie at least a third of their range from those of the stage's trials, and
// no farther than that needs. nullptr: there is none, or the stage has one such value only, which neighbours() changes.
const Arm* Acquisition::far_arm(const config::StageSpace& stage, const Arm& from) {
  constexpr double kFar = 1.0 / 3;
  Configuration to{stage.stage, from.choice};
  int changed = 0;
  for (size_t axis = 0; axis < stage.axes.size(); ++axis) {
    const auto named = [&](const ModelAxis& other) { return other.key == stage.axes[axis].key; };
    const auto model = std::find_if(space_.axes().begin(), space_.axes().end(), named);
    if (model == space_.axes().end() || !model->numeric) continue;
    const size_t i = static_cast<size_t>(model - space_.axes().begin());
    double least = std::numeric_limits<double>::infinity();
    Configuration other{stage.stage, from.choice};
    for (size_t value = 0; value < stage.axes[axis].values.size(); ++value) {
      other.choice[axis] = value;
      const double at = space_.arm(other)->coordinates[i];
      double nearest = std::numeric_limits<double>::infinity();
      for (const auto& [point, known] : surrogate_.points()) {
        if (point.arm->stage == stage.stage) nearest = std::min(nearest, std::abs(at - point.arm->coordinates[i]));
      }
      if (nearest < kFar || nearest >= least) continue;
      least = nearest;
      to.choice[axis] = value;
    }
    if (std::isinf(least)) return nullptr;
    ++changed;
  }
  return changed > 1 ? space_.arm(to) : nullptr;
}

// A stage that was seen with some values only may be far better with others, all of them together: no change of one
// value shows that. So it is looked at once where every number is another one.
std::optional<Proposal> Acquisition::explore_far_values() {
  if (!incumbent_ || !anchor_.arm->in_space) return std::nullopt;
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t hint = batches.rank_at_or_below(static_cast<double>(anchor_.micro_batch));
  const Coverage seen = coverage();
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    const auto own = seen.best.find(stage.stage);
    if (own == seen.best.end() || !far_.insert(stage.stage).second) continue;
    const Arm* arm = far_arm(stage, *own->second.first);
    const int64_t top = arm == nullptr ? -1 : top_rank(*arm, hint, risk_.usual);
    if (top < 0) continue;
    const Point point{arm, batches.at(smaller_is_better() ? std::min(top, std::max<int64_t>(0, hint)) : top)};
    if (2 * point.micro_batch < anchor_.micro_batch) continue;
    if (is_excluded(point) || surrogate_.probability_of_running(point) < kEven) continue;
    Proposal look;
    look.point = point;
    look.fit_probability = surrogate_.probability_of_fitting(point);
    look.exploration = fmt::format("stage {} was measured with other values only", stage.stage);
    return look;
  }
  return std::nullopt;
}

// Lower stages need even more memory, so one failed trial settles all of them. If the trial fits, the models are wrong
// in this stage, and larger trials follow until one fails. Only stages that the models denied get larger trials.
std::optional<Proposal> Acquisition::explore_denied_stage() {
  constexpr double kDeviations = 2;
  constexpr int64_t kGrowth = 4;
  if (!incumbent_ || !anchor_.arm->in_space) return std::nullopt;
  const std::map<int, StageTrials> seen = stage_trials();
  const auto lowest =
      std::find_if(seen.begin(), seen.end(), [](const auto& stage) { return stage.second.largest > 0; });
  if (lowest == seen.end() || lowest->second.pending) return std::nullopt;
  const auto look_at = [&](const config::StageSpace& stage, int64_t micro_batch) -> std::optional<Proposal> {
    const Arm* arm = project(*anchor_.arm, stage);
    const Prediction there = surrogate_.speed().predict({{arm, anchor_.micro_batch}}).front();
    if (there.mean + kDeviations * std::sqrt(there.variance) < incumbent_->prediction.mean) return std::nullopt;
    Proposal look;
    look.point = {arm, micro_batch};
    look.fit_probability = surrogate_.probability_of_fitting(look.point);
    look.exploration = "no model expects this to fit, and no trial has tried it";
    if (look.fit_probability > 1 - risk_.daring || is_excluded(look.point)) return std::nullopt;  // next() can find it
    denied_ = stage.stage;
    return look;
  };
  const search::MicroBatches& batches = space_.micro_batches();
  const auto& [stage, trials] = *lowest;
  if (denied_ == stage && !trials.failed && stage != anchor_.arm->stage) {
    const int64_t wanted = std::min(kGrowth * trials.largest, anchor_.micro_batch);
    const int64_t larger = batches.at(std::max<int64_t>(0, batches.rank_at_or_below(static_cast<double>(wanted))));
    if (larger > trials.largest) return look_at(*space_.tuning_space().stage(stage), larger);
  }
  const config::StageSpace* below = nullptr;
  for (const config::StageSpace& other : space_.tuning_space().stages) {
    if (other.stage < stage) below = &other;  // stages are ascending
  }
  return below == nullptr || seen.count(below->stage) != 0 ? std::nullopt : look_at(*below, batches.at(0));
}

}  // namespace dsat::zero_model
