// What to try beside trials that are still at work.
//
// One trial at a time, the next one is chosen when all is known. With several slots the others' ends are not known yet:
// what they will have shown is drawn (joint_draws.h), and the next trial is the one that adds most to the best of the
// incumbent and of those at work. So the trials of a round spread by themselves: over micro batches where the ceiling
// is not known, over stages and knobs where speed is not.
#include <algorithm>
#include <cmath>

#include "zero_model/choice/acquisition.h"

namespace dsat::guided {
namespace {

constexpr double kLeastFit = 0.05;  // probability of fitting, of any
constexpr size_t kMostArms = 48;    // of a stage: what draws are made of
constexpr size_t kArms = 6;         // of them those of which several sizes are looked at
constexpr size_t kBestArms = 2;     // and of those the ones with the best means
constexpr size_t kThorough = 2;     // arms whose micro batches are all looked at
constexpr size_t kFine = 2;         // arms of a stage with a fine ladder
constexpr int kMostRungs = 24;
constexpr Eigen::Index kDraws = 192, kDrawsOfArms = 96;

}  // namespace

// Of each stage the most promising arms that were visited, each at a size that surely fits.
std::map<int, std::vector<Point>> Planner::promising() const {
  std::map<int, std::vector<const Visit*>> stages;
  for (const auto& [arm, visit] : visits_) {
    if (visit.any) stages[arm->stage].push_back(&visit);
  }
  std::map<int, std::vector<Point>> points;
  for (auto& [stage, visits] : stages) {
    std::sort(visits.begin(), visits.end(), [](const Visit* a, const Visit* b) { return better(a->best, b->best); });
    visits.resize(std::min(kMostArms, visits.size()));
    for (const Visit* visit : visits) {
      const int64_t rank = visit->safe >= 0 ? visit->safe : visit->top;
      points[stage].push_back({visit->best.point.arm, lattice_.micro_batches().at(rank)});
    }
  }
  return points;
}

// Of each stage the arms with the best means and those that add most to them. The arm of the incumbent comes first.
std::vector<const Arm*> Planner::spread_arms(uint64_t draw) const {
  std::map<int, std::vector<Point>> stages = promising();
  std::vector<Point> all, chosen;
  for (const auto& [stage, points] : stages) all.insert(all.end(), points.begin(), points.end());
  if (all.empty()) return {};
  const JointDraws drawn(beliefs_, all, kDrawsOfArms, Random(seed_, 14, draw));
  const auto by_mean = [&](const Point& a, const Point& b) { return drawn.mean(a) > drawn.mean(b); };
  for (auto& [stage, points] : stages) {
    std::sort(points.begin(), points.end());
    std::stable_sort(points.begin(), points.end(), by_mean);
    const auto best = points.begin() + static_cast<std::ptrdiff_t>(std::min(kBestArms, points.size()));
    std::vector<Point> of_stage(points.begin(), best);
    while (of_stage.size() < std::min(kArms, points.size())) {
      const Eigen::ArrayXd bar = drawn.best_of(of_stage);
      of_stage.push_back(*std::max_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
        return drawn.gain(a, bar) < drawn.gain(b, bar);
      }));
    }
    chosen.insert(chosen.end(), of_stage.begin(), of_stage.end());
  }
  std::stable_sort(chosen.begin(), chosen.end(), by_mean);
  std::vector<const Arm*> arms;
  const Arm* best = incumbent_->point.arm;
  if (visits_.count(best) != 0) arms.push_back(best);
  for (const Point& point : chosen) {
    if (std::find(arms.begin(), arms.end(), point.arm) == arms.end()) arms.push_back(point.arm);
  }
  return arms;
}

// From half of what surely fits to what might just fit: in steps of the logarithm, and round ones.
std::vector<int64_t> Planner::ladder(const Arm& arm, const Visit& visit, bool fine) const {
  const double step = fine ? 0.07 : 0.25, tile = 8;
  const search::MicroBatches& batches = lattice_.micro_batches();
  const int64_t highest = top_rank(arm, visit.top, 1 - kLeastFit);
  if (highest < 0) return {};
  const double high = static_cast<double>(batches.at(highest));
  const double low = visit.safe >= 0 ? static_cast<double>(batches.at(visit.safe)) : 1;
  std::vector<int64_t> chosen{batches.at(highest)};
  const auto add = [&](double wanted) {
    const int64_t rank = batches.rank_at_or_below(wanted);
    if (rank >= 0) chosen.push_back(batches.at(rank));
  };
  for (const double share : {0.5, 0.75}) add(share * low);
  const int rungs = std::min(kMostRungs, static_cast<int>(std::log(high / low) / step) + 1);
  for (int rung = 0; rung < rungs; ++rung) {
    const double at = low * std::pow(high / low, static_cast<double>(rung) / rungs);
    add(at + 1e-9);
    if (fine && at >= 2 * tile) add(std::floor(at / tile) * tile);
  }
  return chosen;
}

std::vector<Point> Planner::candidates(uint64_t draw) const {
  std::vector<Point> points;
  size_t count = 0;
  std::map<int, size_t> of_stage;
  for (const Arm* arm : spread_arms(draw)) {
    const Visit& visit = visits_.at(arm);
    std::vector<int64_t> chosen = ladder(*arm, visit, of_stage[arm->stage]++ < kFine);
    if (count++ < kThorough && visit.top >= 0) {
      for (const int64_t m : micro_batches(*arm, visit, true)) chosen.push_back(m);
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const int64_t m : chosen) points.push_back({arm, m});
  }
  return points;
}

void Planner::draw_round(uint64_t draw) {
  const int64_t hint = lattice_.micro_batches().rank_at_or_below(static_cast<double>(incumbent_->point.micro_batch));
  pending_fits_ = 0;
  climb(starts(draw), hint);
  std::vector<Point> points = candidates(draw);
  points.push_back(incumbent_->point);
  points.insert(points.end(), pending_.begin(), pending_.end());
  round_ = std::make_unique<JointDraws>(beliefs_, points, kDraws, Random(seed_, 13, draw));
  round_ended_ = beliefs_.ended();
}

std::optional<Proposal> Planner::next_beside(uint64_t draw) {
  const bool known = round_ != nullptr && round_ended_ == beliefs_.ended() &&
                     std::all_of(pending_.begin(), pending_.end(), [&](const Point& p) { return round_->knows(p); });
  if (!known) draw_round(draw);
  std::vector<Point> others = pending_;
  others.push_back(incumbent_->point);
  const Eigen::ArrayXd bar = round_->best_of(others);
  anchor_ = *std::max_element(others.begin(), others.end(),
                              [this](const Point& a, const Point& b) { return round_->mean(a) < round_->mean(b); });
  std::optional<Proposal> best;
  for (const Point& point : round_->points()) {
    if (taken(point) || !point.arm->in_space) continue;
    Proposal proposal;
    proposal.point = point;
    proposal.fits = round_->probability_of_fitting(point);
    proposal.gain = round_->gain(point, bar) * beliefs_.probability_of_running(*point.arm);
    proposal.value = risk_.less_price(proposal.gain, proposal.fits);
    if (proposal.fits >= kLeastFit && (!best || better(proposal, *best))) best = proposal;
  }
  if (best) {
    const Belief belief = beliefs_.speed().goodness({best->point}).front();
    best->improvement = belief.mean - incumbent_->belief.mean;
    best->deviation = std::sqrt(belief.variance);
  }
  consider_repeats(best);
  return best;
}

}  // namespace dsat::guided
