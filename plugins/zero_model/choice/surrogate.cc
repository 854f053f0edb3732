// Keeps the results of trials by point, stage and axis value. Fits the models of memory and speed to a window of the
// best and the newest trials, so that a fit costs the same in a long study.
#include "zero_model/choice/surrogate.h"

#include <algorithm>
#include <cmath>

#include "search/observation.h"

namespace dsat::zero_model {
namespace {

constexpr size_t kWindow = 96;  // trials that the models are fitted to

std::optional<double> positive(std::optional<double> value) {
  return value && *value > 0 && std::isfinite(*value) ? value : std::nullopt;
}

EndedTrial ended_trial(const search::ObservedTrial& observed, const std::string& metric, ModelSpace& space) {
  const Point point{space.arm(observed.config), observed.micro_batch};
  return {observed.trial,
          point,
          observed.outcome,
          observed.metric(metric),
          observed.peak_bytes,
          observed.peak_above_bytes,
          observed.allocator_retries};
}

MemoryPrior prior_of(const Study& study, const ModelSpace& space) {
  MemoryPrior prior = memory_prior(study);
  prior.states_bytes = 16 * space.parameters() / space.data_parallel_size();
  return prior;
}

}  // namespace

MemoryPrior memory_prior(const Study& study) {
  cost::Inputs inputs;
  if (study.profile.is_object()) inputs = cost::inputs_from_profile(study.profile);
  if (study.device_memory_bytes) inputs.device_memory_bytes = static_cast<double>(*study.device_memory_bytes);
  inputs.fixed_bytes.reset();  // learnt from trials that are among the observations
  double largest_peak_bytes = 0;
  for (const Json& observation : study.observations) {
    const Json peak = observation.value("peak_bytes", Json());
    if (peak.is_number()) largest_peak_bytes = std::max(largest_peak_bytes, peak.get<double>());
  }
  return cost::memory_prior(inputs, largest_peak_bytes);
}

Surrogate::Surrogate(const Study& study, ModelSpace& space)
    : memory_(space.axes(), prior_of(study, space)),
      speed_(space, study.metric, study.maximise),
      axis_runs_(space.axes().size()) {
  for (const search::ObservedTrial& observed : search::training_trials(study)) {
    learn(ended_trial(observed, study.metric, space));
  }
}

const Surrogate::PointRecord* Surrogate::find(const Point& point) const {
  const auto it = points_.find(point);
  return it == points_.end() ? nullptr : &it->second;
}

void Surrogate::learn(EndedTrial ended) {
  if (ended.outcome == Outcome::lost || ended.outcome == Outcome::stopped) return;
  for (std::optional<double>* number : {&ended.metric, &ended.peak_bytes, &ended.peak_above_bytes}) {
    *number = positive(*number);
  }
  PointRecord& point = points_[ended.point];
  const bool refused = ended.outcome == Outcome::invalid_config;
  // A known bound of the micro batch explains the refusal, so no value is to blame.
  if (refused && static_cast<double>(ended.point.micro_batch) > ended.point.arm->most_by_train_batch) return;
  refusals_.add(*ended.point.arm, refused);
  if (refused) {
    // A refusal is no run, and the models learn nothing. If no clash explains it, the micro batch counts as the cause.
    if (refusals_.probability_of_acceptance(*ended.point.arm) == 1) failures_.push_back(ended.point);
    return;
  }
  ++ended_;
  const bool completed = ended.outcome == Outcome::completed;
  const bool ran = completed || ended.outcome == Outcome::out_of_memory;
  if (completed) {
    memory_observations_.push_back({ended.point, true, ended.peak_bytes, std::nullopt, ended.allocator_retries});
  } else if (ran) {
    memory_observations_.push_back({ended.point, false, std::nullopt, ended.peak_above_bytes});
  }
  int& only = out_of_memory_only_[ended.point.arm->stage];
  if (completed) only = -1;
  if (ended.outcome == Outcome::out_of_memory) {
    if (only >= 0) ++only;
    int64_t& least = least_out_of_memory_.emplace(ended.point.arm->stage, ended.point.micro_batch).first->second;
    least = std::min(least, ended.point.micro_batch);
    ++out_of_memory_;
    point.out_of_memory = true;
  }
  if (completed && ended.metric) {
    measurements_.push_back({ended.point, *ended.metric, static_cast<double>(ended.trial)});
    point.first = std::min(point.first, ended.trial);
    const double objective = speed_.objective_of(*ended.metric);
    if (point.count > 0) {
      const double apart = objective - point.objective();
      point.squares += apart * apart * point.count / (point.count + 1);
    }
    ++point.count;
    point.objective_sum += objective;
  }
  if (completed) largest_completed_ = std::max(largest_completed_, ended.point.micro_batch);
  if (!ran) {
    failures_.push_back(ended.point);
    return;
  }
  ++stage_runs_[ended.point.arm->stage];
  for (size_t i = 0; i < axis_runs_.size(); ++i) ++axis_runs_[i][ended.point.arm->coordinates[i]];
}

bool Surrogate::young() const { return ended_ <= kWindow; }

bool Surrogate::due() const {
  const size_t fresh = ended_ - fitted_;
  return fresh > 0 && (young() || fresh * 20 >= ended_);
}

// The observations for the fit of speed: two thirds are the best, one third the newest.
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

// The observations for the fit of memory: half are the newest; among the others, those out of memory come first.
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

// The scales of the residuals are chosen at every fit of a small study, and in a larger one after growth by an eighth.
void Surrogate::fit() {
  constexpr size_t kFew = 32;
  const bool tune = ended_ <= kFew || 8 * (ended_ - tuned_) >= ended_;
  if (tune) tuned_ = ended_;
  memory_.fit(memory_window(), tune);
  if (any_measured()) speed_.fit(window(), tune);
  find_leaders();
  fitted_ = ended_;
}

void Surrogate::update() {
  if (due()) fit();
}

void Surrogate::update_to_the_last() {
  if (fitted_ != ended_) fit();
}

int Surrogate::out_of_memory_only(int stage) const {
  const auto at = out_of_memory_only_.find(stage);
  return at == out_of_memory_only_.end() || at->second < 0 ? 0 : at->second;
}

int64_t Surrogate::least_out_of_memory(int stage) const {
  const auto at = least_out_of_memory_.find(stage);
  return at == least_out_of_memory_.end() ? 0 : at->second;
}

double Surrogate::probability_of_fitting(const Point& point) const {
  if (const PointRecord* known = find(point)) {
    if (known->count > 0) return 1;
    if (known->out_of_memory) return 0;
  }
  return expected_to_fit(point);
}

// A value with failures only is given up after the third. Failures beyond every completed micro batch are left to
// beyond_ceiling().
double Surrogate::share_of_good(int good, const std::function<bool(const Arm&)>& shares) const {
  constexpr int kHopeless = 3;
  constexpr double kByChance = 1.0 / 3;  // the probability that such a failure has another cause
  int bad = 0;
  double blame = 0;  // each failure's is divided among its values that never ran
  for (const Point& failure : failures_) {
    if (!shares(*failure.arm) || (good > 0 && beyond_all(failure))) continue;
    ++bad;
    blame += 1.0 / std::max(1, values_that_never_ran(*failure.arm));
  }
  if (good == 0) return bad < kHopeless ? std::pow(kByChance, blame) : 0;
  return (good + 0.5) / (good + bad + 0.5);
}

int Surrogate::values_that_never_ran(const Arm& arm) const {
  int count = stage_runs_.count(arm.stage) == 0 ? 1 : 0;
  for (size_t i = 0; i < axis_runs_.size(); ++i) count += axis_runs_[i].count(arm.coordinates[i]) == 0 ? 1 : 0;
  return count;
}

// May a stage or a value be the cause of this failure? One that no trial has run with, and that another failure shares.
bool Surrogate::shares_a_suspect(const Point& failure) const {
  const auto is_shared = [&](const auto& runs, const auto& value_of) {
    const auto value = value_of(*failure.arm);
    const auto ran = runs.find(value);
    if (ran != runs.end() && ran->second > 0) return false;
    return std::count_if(failures_.begin(), failures_.end(),
                         [&](const Point& other) { return value_of(*other.arm) == value; }) > 1;
  };
  for (size_t i = 0; i < axis_runs_.size(); ++i) {
    if (is_shared(axis_runs_[i], [i](const Arm& arm) { return arm.coordinates[i]; })) return true;
  }
  return is_shared(stage_runs_, [](const Arm& arm) { return arm.stage; });
}

// The probability that all micro batches from some size on fail for another reason than memory, such as a script's own
// maximum or a data set with too few samples, and that `micro_batch` is beyond this size. Each failure above all
// completed micro batches makes such a size more likely, but less so if a stage or a value may be the cause. The
// logarithm of the size is uniform between the largest completed and the smallest failed one.
double Surrogate::beyond_ceiling(int64_t micro_batch) const {
  constexpr double kByChance = 0.3, kByValue = 0.7;  // the probability that one such failure has another cause
  constexpr int kCertain = 3;                        // so many failures have no other cause
  if (micro_batch <= largest_completed_ || largest_completed_ == 0) return 0;
  double by_chance = 1;
  int count = 0;
  int64_t least = 0;
  for (const Point& failure : failures_) {
    if (!beyond_all(failure)) continue;
    const bool is_of_size = !shares_a_suspect(failure);
    count += is_of_size ? 1 : 0;
    by_chance *= is_of_size ? kByChance : kByValue;
    least = least == 0 ? failure.micro_batch : std::min(least, failure.micro_batch);
  }
  if (least == 0) return 0;
  if (count >= kCertain) by_chance = 0;
  const double fits = static_cast<double>(largest_completed_), fails = static_cast<double>(least);
  // A search for the exact size would lose a trial at each step.
  constexpr double kClose = 1.1;
  const bool is_close = count > 0 && fails <= kClose * fits;
  const double way = is_close ? 1 : std::log(static_cast<double>(micro_batch) / fits) / std::log(fails / fits);
  return (1 - by_chance) * std::min(1.0, way);
}

int64_t Surrogate::least_failed() const {
  int64_t least = 0;
  for (const Point& failure : failures_)
    least = least == 0 ? failure.micro_batch : std::min(least, failure.micro_batch);
  return least;
}

double Surrogate::probability_of_running(const Point& point) const {
  if (point.arm->is_refused) return 0;
  return refusals_.probability_of_acceptance(*point.arm) * probability_of_ending_well(point);
}

double Surrogate::probability_of_ending_well(const Point& point) const {
  if (failures_.empty()) return 1;
  const auto good = [](const auto& runs, const auto& key) {
    const auto it = runs.find(key);
    return it == runs.end() ? 0 : it->second;
  };
  const int stage = point.arm->stage;
  // Each value that never ran may be the cause by itself, so a point with one of them is tried before one with two.
  double least = 1, never_ran = 1;
  const auto consider = [&](int runs, const std::function<bool(const Arm&)>& shares) {
    const double share = share_of_good(runs, shares);
    if (runs == 0) {
      never_ran *= share;
    } else {
      least = std::min(least, share);
    }
  };
  consider(good(stage_runs_, stage), [&](const Arm& arm) { return arm.stage == stage; });
  for (size_t i = 0; i < axis_runs_.size(); ++i) {
    const double at = point.arm->coordinates[i];
    consider(good(axis_runs_[i], at), [&](const Arm& arm) { return arm.coordinates[i] == at; });
  }
  return least * never_ran * (1 - beyond_ceiling(point.micro_batch));
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
