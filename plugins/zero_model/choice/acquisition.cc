// Chooses the next trial: climbs from the best arms to their best neighbours, scores the micro batches of the
// finalists, and compares the best of them with a repeated measurement of a leader.
#include "zero_model/choice/acquisition.h"

#include <algorithm>
#include <cmath>

#include "cost/posterior/normal.h"
#include "search/frugal.h"

namespace dsat::zero_model {
namespace {

constexpr int kSweeps = 3;
constexpr size_t kFront = 5;  // arms whose neighbours a sweep visits
constexpr int kRandomStarts = 2;
// Models fail far from the trials. A proposal is at most this multiple of the largest micro batch that completed.
constexpr double kFarthest = 4;

// The other values of an axis to visit: all values of a short axis, ever larger steps on a long one.
std::vector<size_t> other_values(size_t value, size_t count) {
  constexpr size_t kShort = 10;
  const bool is_short = count <= kShort;
  std::vector<size_t> chosen;
  for (size_t step = 1; step < count; step = is_short ? step + 1 : 2 * step) {
    if (step <= value) chosen.push_back(value - step);
    if (value + step < count) chosen.push_back(value + step);
  }
  return chosen;
}

}  // namespace

void add_unique(std::vector<const Arm*>& arms, const Arm* arm) {
  if (arm != nullptr && std::find(arms.begin(), arms.end(), arm) == arms.end()) arms.push_back(arm);
}

bool better(const Proposal& a, const Proposal& b) {
  if (a.value != b.value) return a.value > b.value;
  return a.point < b.point;
}

bool Acquisition::is_excluded(const Point& point) const {
  if (static_cast<double>(point.micro_batch) > point.arm->most_by_train_batch) return true;
  // In a stage that has only run out of memory the model is wrong, so each failure after the first halves what is
  // tried. The smallest micro batch shows whether the stage fits at all.
  const bool is_small = point.micro_batch <= space_.micro_batches().smallest();
  const int stage = point.arm->stage, failures = surrogate_.out_of_memory_only(stage);
  const double most = std::ldexp(static_cast<double>(surrogate_.least_out_of_memory(stage)), 1 - failures);
  if (!is_small && failures > 1 && static_cast<double>(point.micro_batch) > most) return true;
  return surrogate_.find(point) != nullptr || std::find(pending_.begin(), pending_.end(), point) != pending_.end();
}

// The arm of another stage with the same values on the axes that both stages have.
const Arm* Acquisition::project(const Arm& from, const config::StageSpace& onto) {
  Configuration to{onto.stage, {}};
  const config::StageSpace* of = from.in_space ? space_.tuning_space().stage(from.stage) : nullptr;
  for (const config::Axis& axis : onto.axes) {
    size_t index = axis.values.size() / 2;
    for (size_t i = 0; of != nullptr && i < of->axes.size(); ++i) {
      if (of->axes[i].key != axis.key) continue;
      const auto at = std::find(axis.values.begin(), axis.values.end(), of->axes[i].values[from.choice[i]]);
      if (at != axis.values.end()) index = static_cast<size_t>(at - axis.values.begin());
    }
    to.choice.push_back(index);
  }
  return space_.arm(to);
}

const Arm* Acquisition::random_arm(const config::StageSpace& stage, Random& random) {
  constexpr int kDraws = 32;
  const auto smallest = static_cast<double>(space_.micro_batches().smallest());
  const Arm* arm = nullptr;
  // An arm without any possible micro batch is drawn again.
  for (int draw = 0; draw < kDraws && (arm == nullptr || arm->most_by_train_batch < smallest); ++draw) {
    Configuration any{stage.stage, {}};
    for (const config::Axis& axis : stage.axes) any.choice.push_back(random.uniform_below(axis.values.size()));
    arm = space_.arm(any);
  }
  return arm;
}

// The starts of the search: the best arm of each stage, the incumbent moved to each stage, and random arms.
std::vector<const Arm*> Acquisition::starts(uint64_t draw) {
  std::vector<const Arm*> arms;
  std::map<int, std::pair<double, const Arm*>> best_of_stage;
  for (const Point& point : surrogate_.leaders()) {
    const Surrogate::PointRecord& measured = *surrogate_.find(point);
    if (!point.arm->in_space) continue;
    const double mean = measured.objective();
    const auto it = best_of_stage.find(point.arm->stage);
    if (it == best_of_stage.end() || mean > it->second.first) best_of_stage[point.arm->stage] = {mean, point.arm};
  }
  for (const auto& [stage, best] : best_of_stage) add_unique(arms, best.second);
  Random random(seed_, 11, draw);
  for (const config::StageSpace& stage : space_.tuning_space().stages) {
    if (incumbent_) add_unique(arms, project(*incumbent_->point.arm, stage));
    for (int i = 0; i < kRandomStarts; ++i) {
      add_unique(arms, random_arm(stage, random));
    }
  }
  return arms;
}

const std::vector<const Arm*>& Acquisition::neighbours(const Arm& arm) {
  std::vector<const Arm*>& arms = neighbours_[&arm];
  if (!arms.empty()) return arms;
  const config::StageSpace& stage = *space_.tuning_space().stage(arm.stage);
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    Configuration next{arm.stage, arm.choice};
    for (const size_t value : other_values(arm.choice[i], stage.axes[i].values.size())) {
      next.choice[i] = value;
      arms.push_back(space_.arm(next));
    }
  }
  return arms;
}

// Does a larger micro batch still pay? The question counts only if nothing bounds the micro batch, neither a device's
// memory nor a failure. Without a limit, each further step would take longer in proportion to its micro batch.
bool Acquisition::growth_pays() const {
  constexpr double kLeastGain = 0.01;
  const int64_t largest = surrogate_.largest_completed();
  const bool bounded =
      surrogate_.memory().device_known() || surrogate_.out_of_memory() > 0 || surrogate_.least_failed() > 0;
  if (bounded || !incumbent_ || largest == 0) return true;
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t rank = batches.rank_at_or_below(kFarthest * static_cast<double>(largest));
  if (rank < 0) return true;
  const Prediction beyond = surrogate_.speed().predict({{incumbent_->point.arm, batches.at(rank)}}).front();
  return beyond.mean - incumbent_->prediction.mean >= kLeastGain;
}

int64_t Acquisition::last_rank() const {
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t last = batches.count() - 1, largest = surrogate_.largest_completed();
  if (largest == 0) return last;
  const int64_t ran = batches.rank_at_or_below(static_cast<double>(largest));
  if (!growth_pays_) return std::clamp<int64_t>(ran, 0, last);
  // Divisors may lie farther apart, so the next divisor is always allowed.
  const double farthest = kFarthest * static_cast<double>(largest);
  return std::min(last, std::max(batches.rank_at_or_below(farthest), ran + 1));
}

// Gallops from `hint`, then bisects. This assumes that a larger micro batch is less likely to fit.
int64_t Acquisition::top_rank(const Arm& arm, int64_t hint, double risk) const {
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t last = std::min(last_rank(), batches.rank_at_or_below(arm.most_by_train_batch));
  if (last < 0) return -1;
  const auto fits = [&](int64_t rank) { return surrogate_.expected_to_fit({&arm, batches.at(rank)}) >= 1 - risk; };
  int64_t low = -1, high = last + 1;
  int64_t at = std::clamp<int64_t>(hint, 0, last);
  int64_t stride = 1;
  while (low + 1 < high) {
    if (fits(at)) {
      low = at;
      if (high <= last) break;
      if (low == last) break;
      at = std::min(last, low + stride);
    } else {
      high = at;
      if (low >= 0) break;
      if (high == 0) break;
      at = std::max<int64_t>(0, high - stride);
    }
    stride *= 2;
  }
  while (low + 1 < high && high <= last) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::vector<int64_t> Acquisition::few_micro_batches(const Visit& visit) const {
  const search::MicroBatches& batches = space_.micro_batches();
  const int64_t most = batches.at(visit.top);
  std::set<int64_t> chosen{most};
  if (visit.safe >= 0) chosen.insert(batches.at(visit.safe));
  for (const int64_t wanted : {std::min(most, incumbent_->point.micro_batch), most / kTile * kTile}) {
    const int64_t rank = batches.rank_at_or_below(static_cast<double>(wanted));
    if (rank >= 0) chosen.insert(batches.at(rank));
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<Proposal> Acquisition::score(const std::vector<Point>& points) const {
  std::vector<Proposal> proposals(points.size());
  if (points.empty()) return proposals;
  const std::vector<Prediction> predictions = surrogate_.speed().predict(points);
  const double noise = surrogate_.speed().noise_variance();
  for (size_t i = 0; i < points.size(); ++i) {
    Proposal& proposal = proposals[i];
    proposal.point = points[i];
    proposal.fit_probability = surrogate_.expected_to_fit(points[i]);
    proposal.improvement = predictions[i].mean - incumbent_->prediction.mean;
    proposal.deviation = std::sqrt(predictions[i].variance);
    const double gain = expected_improvement(proposal.improvement, mean_change_deviation(predictions[i], noise));
    proposal.gain = gain * proposal.fit_probability * surrogate_.probability_of_running(points[i]);
    proposal.value = risk_.value_of(proposal.gain, proposal.fit_probability);
  }
  return proposals;
}

void Acquisition::find_tops(const Arm& arm, int64_t hint, Visit& visit) const {
  visit.top = top_rank(arm, hint, risk_.daring);
  visit.safe = risk_.usual < risk_.daring ? top_rank(arm, visit.top, risk_.usual) : visit.top;
}

void Acquisition::visit(const std::vector<const Arm*>& arms, int64_t hint) {
  std::vector<Point> points;
  for (const Arm* arm : arms) {
    Visit& visit = visits_[arm];
    find_tops(*arm, hint, visit);
    if (visit.top < 0) continue;
    for (const int64_t m : few_micro_batches(visit)) {
      if (!is_excluded({arm, m})) points.push_back({arm, m});
    }
  }
  for (const Proposal& proposal : score(points)) {
    if (proposal.fit_probability < 1 - risk_.daring) continue;
    Visit& visit = visits_[proposal.point.arm];
    if (!visit.any || better(proposal, visit.best)) visit.best = proposal;
    visit.any = true;
  }
}

// Before the first measurement: the largest micro batch that surely fits, among random arms of each stage in turn. A
// stage that has run out of memory is left to the values that need the least, at the smallest micro batch: if they do
// not fit, nothing does.
std::optional<Proposal> Acquisition::safest(uint64_t draw) {
  constexpr double kHopeless = 0.01;
  const auto& stages = space_.tuning_space().stages;
  std::optional<Proposal> best;
  double most = -1;
  Random random(seed_, 12, draw);
  const int64_t least_failed = surrogate_.least_failed();
  for (size_t i = 0; i < stages.size(); ++i) {
    const config::StageSpace& stage = stages[(stages.size() - 1 + draw + i) % stages.size()];
    const bool is_doubtful = surrogate_.out_of_memory_only(stage.stage) > 0;
    const std::vector<Configuration> frugal = search::frugal_configurations(stage);
    const size_t attempts = is_doubtful ? frugal.size() : 4;
    for (size_t attempt = 0; attempt < attempts; ++attempt) {
      const Arm* arm = is_doubtful ? space_.arm(frugal[attempt]) : random_arm(stage, random);
      if (surrogate_.probability_of_acceptance(*arm) < kHopeless) continue;
      int64_t rank = is_doubtful ? 0 : std::max<int64_t>(0, top_rank(*arm, 8, risk_.usual));
      // A failure may mean that the script accepts no larger micro batch.
      if (least_failed > 0) {
        const int64_t half = space_.micro_batches().rank_at_or_below(static_cast<double>(least_failed) / 2);
        if (half >= 0) rank = std::min(rank, half);
      }
      while (rank >= 0 && is_excluded({arm, space_.micro_batches().at(rank)})) --rank;
      if (rank < 0) continue;
      const Point point{arm, space_.micro_batches().at(rank)};
      const double fits = surrogate_.expected_to_fit(point);
      const double ends_well = fits * surrogate_.probability_of_running(point);
      // A later stage must be clearly more likely to succeed.
      if (ends_well <= most + 0.05) continue;
      most = ends_well;
      best = Proposal{point, false, 1, 1, fits, 0, 1};
    }
  }
  return best;
}

// Coordinate ascent: moves from the most promising arms to their best neighbours, until no neighbour is better.
void Acquisition::coordinate_ascent(std::vector<const Arm*> front, int64_t hint) {
  visit(front, hint);
  const auto promises = [this](const Arm* a, const Arm* b) {
    const Visit &left = visits_[a], &right = visits_[b];
    return left.any != right.any ? left.any : left.any && better(left.best, right.best);
  };
  for (int sweep = 0; sweep < kSweeps && !front.empty(); ++sweep) {
    std::stable_sort(front.begin(), front.end(), promises);
    front.resize(std::min(front.size(), kFront));
    std::vector<const Arm*> moved;
    for (const Arm* arm : front) {
      std::vector<const Arm*> fresh;
      for (const Arm* next : neighbours(*arm)) {
        if (visits_.count(next) == 0) fresh.push_back(next);
      }
      visit(fresh, visits_[arm].top >= 0 ? visits_[arm].top : hint);
      const Arm* to = arm;
      for (const Arm* next : neighbours(*arm)) {
        const Visit& visit = visits_[next];
        if (visit.any && (!visits_[to].any || better(visit.best, visits_[to].best))) to = next;
      }
      if (to != arm) add_unique(moved, to);
    }
    front = moved;
  }
}

std::optional<Proposal> Acquisition::next(const std::vector<Point>& pending, const Risk& risk, uint64_t draw) {
  pending_ = pending;
  risk_ = risk;
  incumbent_ = surrogate_.incumbent();
  growth_pays_ = growth_pays();
  if (!incumbent_) return safest(draw);
  std::optional<Proposal> best = choose(draw);
  consider_repeats(best);
  return best;
}

}  // namespace dsat::zero_model
