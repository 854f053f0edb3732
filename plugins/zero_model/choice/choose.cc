// Chooses a trial by samples of joint results (joint_samples.h): the trial that adds most to the best of the incumbent
// and the pending trials. So the trials of a batch spread by themselves: over micro batches if the ceiling is unknown,
// over stages and axes if the speed is unknown.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cost/posterior/normal.h"
#include "zero_model/choice/acquisition.h"

namespace dsat::zero_model {
namespace {

constexpr size_t kMostArms = 48;  // sampled arms of a stage
constexpr size_t kArms = 6;       // candidates among these, at several micro batches
constexpr size_t kBestArms = 2;   // candidates that are chosen by their means
constexpr size_t kThorough = 2;   // arms with all their micro batches as candidates
constexpr size_t kFine = 2;       // arms of a stage with a fine ladder
constexpr int kMostRungs = 24;
constexpr Eigen::Index kSamples = 192, kArmSamples = 96;

}  // namespace

// The most promising arms of each stage among the visited ones, each at a micro batch that surely fits.
std::map<int, std::vector<Point>> Acquisition::promising_points() const {
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
      points[stage].push_back({visit->best.point.arm, space_.micro_batches().at(rank)});
    }
  }
  return points;
}

// The arms of each stage with the best means, and the arms that add most to them. The incumbent's arm comes first.
std::vector<const Arm*> Acquisition::candidate_arms(uint64_t draw) const {
  std::map<int, std::vector<Point>> stages = promising_points();
  std::vector<Point> all, chosen;
  for (const auto& [stage, points] : stages) all.insert(all.end(), points.begin(), points.end());
  if (all.empty()) return {};
  const JointSamples samples(surrogate_, all, kArmSamples, Random(seed_, 14, draw));
  const auto by_mean = [&](const Point& a, const Point& b) { return samples.mean(a) > samples.mean(b); };
  for (auto& [stage, points] : stages) {
    std::sort(points.begin(), points.end());
    std::stable_sort(points.begin(), points.end(), by_mean);
    const auto best = points.begin() + static_cast<std::ptrdiff_t>(std::min(kBestArms, points.size()));
    std::vector<Point> of_stage(points.begin(), best);
    while (of_stage.size() < std::min(kArms, points.size())) {
      const Eigen::ArrayXd bar = samples.best_of(of_stage);
      of_stage.push_back(*std::max_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
        return samples.gain(a, bar) < samples.gain(b, bar);
      }));
    }
    chosen.insert(chosen.end(), of_stage.begin(), of_stage.end());
  }
  std::stable_sort(chosen.begin(), chosen.end(), by_mean);
  std::vector<const Arm*> arms;
  const Arm* best = incumbent_->point.arm;
  if (visits_.count(best) != 0) arms.push_back(best);
  for (const Point& point : chosen) add_unique(arms, point.arm);
  return arms;
}

// Micro batches from half of the sure ceiling to the possible one, in logarithmic steps and at round sizes.
std::vector<int64_t> Acquisition::micro_batch_ladder(const Arm& arm, const Visit& visit, bool fine) const {
  const double step = fine ? 0.07 : 0.25, tile = 8;
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t highest = top_rank(arm, visit.top, risk_.daring);
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

// Shares of the ceiling, round sizes, and the neighbours of the ceiling and of the best micro batch.
std::vector<int64_t> Acquisition::many_micro_batches(const Visit& visit) const {
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t most = batches.at(visit.top), best = incumbent_->point.micro_batch;
  std::vector<int64_t> chosen;
  const auto add = [&](int64_t wanted) {
    const int64_t rank = batches.rank_at_or_below(static_cast<double>(std::min(wanted, most)));
    if (rank >= 0) chosen.push_back(batches.at(rank));
  };
  for (const double share : {1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.65, 0.5, 0.35, 0.25, 0.12}) {
    const int64_t at = static_cast<int64_t>(share * static_cast<double>(most));
    for (const int64_t step : {1, 2, 4, 8, 16, 32}) add(at / step * step);
  }
  for (const int64_t base : {best, most}) {
    for (int64_t by = -4; by <= 4; ++by) add(base + by);
  }
  for (const int64_t step : {8, 16}) add((best / step + 1) * step);
  return chosen;
}

std::vector<Point> Acquisition::candidates(uint64_t draw) const {
  std::vector<Point> points;
  size_t count = 0;
  std::map<int, size_t> of_stage;
  for (const Arm* arm : candidate_arms(draw)) {
    const Visit& visit = visits_.at(arm);
    std::vector<int64_t> chosen = micro_batch_ladder(*arm, visit, of_stage[arm->stage]++ < kFine);
    if (count++ < kThorough && visit.top >= 0) {
      for (const int64_t m : many_micro_batches(visit)) chosen.push_back(m);
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const int64_t m : chosen) points.push_back({arm, m});
  }
  return points;
}

void Acquisition::sample(uint64_t draw) {
  visits_.clear();
  const int64_t hint = space_.micro_batches().rank_at_or_below(static_cast<double>(incumbent_->point.micro_batch));
  coordinate_ascent(starts(draw), hint);
  std::vector<Point> points = candidates(draw);
  points.push_back(incumbent_->point);
  points.insert(points.end(), pending_.begin(), pending_.end());
  samples_ = std::make_unique<JointSamples>(surrogate_, points, kSamples, Random(seed_, 13, draw));
  sampled_ = surrogate_.fitted();
}

// One set of samples serves until the models are fitted again, if pending trials are among its points. A long study,
// which fits seldom, leaves out those that are not.
std::optional<Proposal> Acquisition::choose(uint64_t draw) {
  const auto is_sampled = [this](const Point& point) { return samples_->contains(point); };
  const bool serves = samples_ != nullptr && sampled_ == surrogate_.fitted() && is_sampled(incumbent_->point) &&
                      (!surrogate_.young() || std::all_of(pending_.begin(), pending_.end(), is_sampled));
  if (!serves) sample(draw);
  std::vector<Point> others;
  std::copy_if(pending_.begin(), pending_.end(), std::back_inserter(others), is_sampled);
  others.push_back(incumbent_->point);
  const JointSamples& joint = *samples_;
  const Eigen::ArrayXd bar = joint.best_of(others);
  anchor_ = *std::max_element(others.begin(), others.end(),
                              [&](const Point& a, const Point& b) { return joint.mean(a) < joint.mean(b); });
  std::optional<Proposal> best;
  for (const Point& point : joint.points()) {
    if (is_excluded(point) || !point.arm->in_space) continue;
    Proposal proposal;
    proposal.point = point;
    proposal.fit_probability = joint.probability_of_fitting(point);
    proposal.gain = joint.gain(point, bar) * surrogate_.probability_of_running(point);
    proposal.value = risk_.value_of(proposal.gain, proposal.fit_probability);
    if (proposal.fit_probability >= 1 - risk_.daring && (!best || better(proposal, *best))) best = proposal;
  }
  // In a long study hundreds of slots use the samples up. What is left are the other arms that the search has visited.
  if (!surrogate_.young() && (!best || best->value <= 0)) {
    for (const auto& [arm, visit] : visits_) {
      if (visit.any && !is_excluded(visit.best.point) && (!best || better(visit.best, *best))) best = visit.best;
    }
  }
  if (best) {
    const Prediction prediction = surrogate_.speed().predict({best->point}).front();
    best->improvement = prediction.mean - incumbent_->prediction.mean;
    best->deviation = std::sqrt(prediction.variance);
  }
  return best;
}

// Considers a repeated measurement. It pays if it may change which point is predicted best.
void Acquisition::consider_repeats(std::optional<Proposal>& best) const {
  std::vector<Point> points;
  for (const Point& point : surrogate_.leaders()) {
    const bool running = std::find(pending_.begin(), pending_.end(), point) != pending_.end();
    if (!running) points.push_back(point);
  }
  if (points.size() < 2) return;
  const std::vector<Prediction> predictions = surrogate_.speed().predict(points);
  const double noise = surrogate_.speed().noise_variance();
  size_t first = 0, second = points.size();
  for (size_t i = 1; i < points.size(); ++i) {
    if (predictions[i].mean > predictions[first].mean) {
      second = first;
      first = i;
    } else if (second == points.size() || predictions[i].mean > predictions[second].mean) {
      second = i;
    }
  }
  for (size_t i = 0; i < points.size(); ++i) {
    if (!points[i].arm->in_space) continue;
    const double rival = predictions[i == first ? second : first].mean;
    Proposal again{
        points[i], true, 0, 0, 1, predictions[i].mean - predictions[first].mean, std::sqrt(predictions[i].variance)};
    again.gain = again.value =
        expected_improvement(-std::abs(predictions[i].mean - rival), mean_change_deviation(predictions[i], noise));
    if (!best || better(again, *best)) best = again;
  }
}

}  // namespace dsat::zero_model
