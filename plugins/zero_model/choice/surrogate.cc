// Keeps what trials have shown by point, stage and axis value, and fits the models of memory and speed to a window of
// the trials: the best and the newest, so that a fit costs the same in a long study.
#include "zero_model/choice/surrogate.h"

#include <algorithm>
#include <cmath>

#include "dsat/config/batch.h"
#include "search/observation.h"

namespace dsat::zero_model {
namespace {

constexpr size_t kWindow = 96;  // trials that the models are fitted to

std::optional<double> positive(std::optional<double> value) {
  return value && *value > 0 && std::isfinite(*value) ? value : std::nullopt;
}

EndedTrial ended_trial(const search::ObservedTrial& observed, const std::string& metric, ModelSpace& space) {
  const Point point{space.arm(observed.config), observed.config.value(config::kMicroBatchKey, int64_t{1})};
  return {observed.trial,
          point,
          observed.outcome,
          observed.metric(metric),
          observed.metric("forward"),
          observed.metric("backward"),
          observed.metric("step"),
          observed.peak_bytes};
}

}  // namespace

Surrogate::Surrogate(const Study& study, ModelSpace& space)
    : memory_(space, memory_prior(study)),
      speed_(space, study.metric, study.maximise),
      axis_runs_(space.axes().size()) {
  for (const Json& observation : study.observations) {
    if (const auto observed = search::training_trial(observation)) learn(ended_trial(*observed, study.metric, space));
  }
}

const Surrogate::PointRecord* Surrogate::find(const Point& point) const {
  const auto it = points_.find(point);
  return it == points_.end() ? nullptr : &it->second;
}

void Surrogate::learn(EndedTrial ended) {
  if (ended.outcome == Outcome::lost || ended.outcome == Outcome::stopped) return;
  for (std::optional<double>* number :
       {&ended.metric, &ended.forward, &ended.backward, &ended.step, &ended.peak_bytes}) {
    *number = positive(*number);
  }
  ++ended_;
  PointRecord& point = points_[ended.point];
  if (point.first == kNoTrial || ended.trial < point.first) point.first = ended.trial;
  const bool completed = ended.outcome == Outcome::completed;
  const bool ran = completed || ended.outcome == Outcome::out_of_memory;
  if (ran) memory_observations_.push_back({ended.point, completed, completed ? ended.peak_bytes : std::nullopt});
  if (ended.outcome == Outcome::out_of_memory) {
    ++out_of_memory_;
    point.out_of_memory = true;
  }
  if (completed && ended.metric) {
    measurements_.push_back({ended.point, *ended.metric, ended.forward, ended.backward, ended.step});
    ++point.count;
    point.objective_sum += speed_.objective_of(*ended.metric);
  }
  const auto count = [&](Runs& runs) { ++(ran ? runs.good : runs.bad); };
  count(stage_runs_[ended.point.arm->stage]);
  for (size_t i = 0; i < axis_runs_.size(); ++i) count(axis_runs_[i][ended.point.arm->coordinates[i]]);
}

bool Surrogate::young() const { return ended_ <= kWindow; }

bool Surrogate::due() const {
  const size_t fresh = ended_ - fitted_;
  return fresh > 0 && (young() || fresh * 20 >= ended_);
}

// The observations that speed is fitted to: two thirds the best by measurement, one third the newest.
std::vector<SpeedObservation> Surrogate::window() const {
  if (measurements_.size() <= kWindow) return measurements_;
  std::vector<size_t> order(measurements_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto newest = static_cast<std::ptrdiff_t>(order.size() - kWindow / 3);
  std::partial_sort(order.begin(), order.begin() + 2 * kWindow / 3, order.begin() + newest, [&](size_t a, size_t b) {
    const double left = speed_.objective_of(measurements_[a].metric),
                 right = speed_.objective_of(measurements_[b].metric);
    return left != right ? left > right : a < b;
  });
  order.erase(order.begin() + 2 * kWindow / 3, order.begin() + newest);
  std::sort(order.begin(), order.end());
  std::vector<SpeedObservation> chosen;
  for (const size_t i : order) chosen.push_back(measurements_[i]);
  return chosen;
}

// The observations that memory is fitted to: half the newest; of the others, those that ran out of memory come first.
std::vector<MemoryObservation> Surrogate::memory_window() const {
  if (memory_observations_.size() <= kWindow) return memory_observations_;
  std::vector<MemoryObservation> chosen;
  const size_t newest = memory_observations_.size() - kWindow / 2;
  for (size_t i = 0; i < newest && chosen.size() < kWindow / 2; ++i) {
    if (!memory_observations_[i].fits) chosen.push_back(memory_observations_[i]);
  }
  for (size_t i = 0; i < newest && chosen.size() < kWindow / 2; ++i) {
    if (memory_observations_[i].fits) chosen.push_back(memory_observations_[i]);
  }
  chosen.insert(chosen.end(), memory_observations_.begin() + static_cast<std::ptrdiff_t>(newest),
                memory_observations_.end());
  return chosen;
}

void Surrogate::update(const std::vector<Point>& pending) {
  if (due()) {
    // The residuals' scales are chosen at every fit while each trial counts, later when the study has grown by an
    // eighth.
    constexpr size_t kFew = 32;
    const bool tune = ended_ <= kFew || 8 * (ended_ - tuned_) >= ended_;
    if (tune) tuned_ = ended_;
    memory_.fit(memory_window(), tune);
    if (any_measured()) speed_.fit(window(), tune);
    find_leaders();
    fitted_ = ended_;
  }
  if (!any_measured()) return;
  // The newest of many pending trials are those that say most about where the next one should go.
  constexpr size_t kMostPending = 64;
  const auto newest = static_cast<std::ptrdiff_t>(std::min(kMostPending, pending.size()));
  speed_.expect({pending.end() - newest, pending.end()});
}

double Surrogate::probability_of_fitting(const Point& point) const {
  if (const PointRecord* known = find(point)) {
    if (known->count > 0) return 1;
    if (known->out_of_memory) return 0;
  }
  return expected_to_fit(point);
}

// A value with which trials failed, and never did anything else, is given up after the third failure.
double Surrogate::share_of_good(const Runs& runs) {
  constexpr int kHopeless = 3;
  if (runs.good == 0 && runs.bad >= kHopeless) return 0;
  return (runs.good + 0.5) / (runs.good + runs.bad + 0.5);
}

double Surrogate::probability_of_running(const Arm& arm) const {
  double least = 1;
  const auto look = [&](const auto& runs, const auto& key) {
    if (const auto it = runs.find(key); it != runs.end()) least = std::min(least, share_of_good(it->second));
  };
  look(stage_runs_, arm.stage);
  for (size_t i = 0; i < axis_runs_.size(); ++i) look(axis_runs_[i], arm.coordinates[i]);
  return least;
}

void Surrogate::find_leaders() {
  leaders_.clear();
  for (const auto& [point, measured] : points_) {
    if (measured.count > 0) leaders_.push_back(point);
  }
  if (leaders_.size() <= kWindow) return;
  const auto last = leaders_.begin() + static_cast<std::ptrdiff_t>(kWindow);
  std::partial_sort(leaders_.begin(), last, leaders_.end(), [&](const Point& a, const Point& b) {
    const double left = points_.at(a).objective(), right = points_.at(b).objective();
    return left != right ? left > right : a < b;
  });
  leaders_.erase(last, leaders_.end());
}

std::optional<Surrogate::Incumbent> Surrogate::incumbent() const {
  if (leaders_.empty()) return std::nullopt;
  const std::vector<Prediction> predictions = speed_.predict(leaders_);
  size_t best = 0;
  for (size_t i = 1; i < leaders_.size(); ++i) {
    if (predictions[i].mean > predictions[best].mean) best = i;
  }
  return Incumbent{leaders_[best], points_.at(leaders_[best]).first, predictions[best]};
}

}  // namespace dsat::zero_model
