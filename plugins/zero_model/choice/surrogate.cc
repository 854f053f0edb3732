#include "zero_model/choice/surrogate.h"

#include <algorithm>
#include <cmath>

namespace dsat::guided {
namespace {

constexpr size_t kWindow = 96;  // measurements that the models look at

// A value with which trials fail, and never did anything else, is given up after the third.
double share_of_good(const std::pair<int, int>& runs) {
  constexpr int kHopeless = 3;
  if (runs.first == 0 && runs.second >= kHopeless) return 0;
  return (runs.first + 0.5) / (runs.first + runs.second + 0.5);
}

}  // namespace

Beliefs::Beliefs(const Study& study, Lattice& lattice)
    : lattice_(lattice),
      memory_(lattice, memory_prior(study)),
      speed_(lattice, study.metric, study.maximise),
      knob_runs_(lattice.knobs().size()) {}

const Beliefs::Measured* Beliefs::find(const Point& point) const {
  const auto it = points_.find(point);
  return it == points_.end() ? nullptr : &it->second;
}

void Beliefs::learn(const Ended& ended) {
  if (ended.outcome == Outcome::lost || ended.outcome == Outcome::stopped) return;
  ended_.push_back(ended);
  Measured& point = points_[ended.point];
  if (point.first == kNoTrial || ended.trial < point.first) point.first = ended.trial;
  const bool completed = ended.outcome == Outcome::completed;
  const bool ran = completed || ended.outcome == Outcome::out_of_memory;
  if (ran) memory_samples_.push_back({ended.point, completed, completed ? ended.peak_bytes : std::nullopt});
  if (ended.outcome == Outcome::out_of_memory) {
    ++out_of_memory_;
    point.out_of_memory = true;
  }
  if (completed && ended.metric && *ended.metric > 0) {
    measurements_.push_back({ended.point, *ended.metric, ended.forward, ended.backward, ended.step});
    ++point.count;
    point.sum_goodness += speed_.goodness_of(*ended.metric);
  } else {
    ++point.failures;
  }
  const auto count = [&](std::pair<int, int>& runs) { ++(ran ? runs.first : runs.second); };
  count(stage_runs_[ended.point.arm->stage]);
  for (size_t i = 0; i < knob_runs_.size(); ++i) count(knob_runs_[i][ended.point.arm->coordinates[i]]);
}

bool Beliefs::young() const { return ended_.size() <= kWindow; }

bool Beliefs::due() const {
  const size_t fresh = ended_.size() - fitted_;
  return fresh > 0 && (young() || fresh * 20 >= ended_.size());
}

// The best by measurement and the newest.
std::vector<Measurement> Beliefs::window() const {
  if (measurements_.size() <= kWindow) return measurements_;
  std::vector<size_t> order(measurements_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto newest = static_cast<std::ptrdiff_t>(order.size() - kWindow / 3);
  std::partial_sort(order.begin(), order.begin() + 2 * kWindow / 3, order.begin() + newest, [&](size_t a, size_t b) {
    const double left = speed_.goodness_of(measurements_[a].metric),
                 right = speed_.goodness_of(measurements_[b].metric);
    return left != right ? left > right : a < b;
  });
  order.erase(order.begin() + 2 * kWindow / 3, order.begin() + newest);
  std::sort(order.begin(), order.end());
  std::vector<Measurement> chosen;
  for (const size_t i : order) chosen.push_back(measurements_[i]);
  return chosen;
}

std::vector<MemoryModel::Sample> Beliefs::memory_window() const {
  if (memory_samples_.size() <= kWindow) return memory_samples_;
  std::vector<MemoryModel::Sample> chosen;
  const size_t newest = memory_samples_.size() - kWindow / 2;
  for (size_t i = 0; i < newest && chosen.size() < kWindow / 2; ++i) {
    if (!memory_samples_[i].fits) chosen.push_back(memory_samples_[i]);
  }
  for (size_t i = 0; i < newest && chosen.size() < kWindow / 2; ++i) {
    if (memory_samples_[i].fits) chosen.push_back(memory_samples_[i]);
  }
  chosen.insert(chosen.end(), memory_samples_.begin() + static_cast<std::ptrdiff_t>(newest), memory_samples_.end());
  return chosen;
}

void Beliefs::update(const std::vector<Point>& pending) {
  if (due()) {
    // How rough the residuals are is chosen at every fit while each trial counts, later as the study grows by an
    // eighth.
    constexpr size_t kFew = 32;
    const bool tune = ended_.size() <= kFew || 8 * (ended_.size() - tuned_) >= ended_.size();
    if (tune) tuned_ = ended_.size();
    memory_.fit(memory_window(), tune);
    if (any_measured()) speed_.fit(window(), tune);
    find_leaders();
    fitted_ = ended_.size();
  }
  if (!any_measured()) return;
  // What many trials at work will teach is mostly what the newest of them will.
  constexpr size_t kMostPending = 64;
  const auto newest = static_cast<std::ptrdiff_t>(std::min(kMostPending, pending.size()));
  speed_.expect({pending.end() - newest, pending.end()});
}

double Beliefs::probability_of_fitting(const Point& point) const {
  if (const Measured* known = find(point)) {
    if (known->count > 0) return 1;
    if (known->out_of_memory) return 0;
  }
  return expected_to_fit(point);
}

double Beliefs::probability_of_running(const Arm& arm) const {
  double least = 1;
  const auto look = [&](const auto& runs, const auto& key) {
    if (const auto it = runs.find(key); it != runs.end()) least = std::min(least, share_of_good(it->second));
  };
  look(stage_runs_, arm.stage);
  for (size_t i = 0; i < knob_runs_.size(); ++i) look(knob_runs_[i], arm.coordinates[i]);
  return least;
}

void Beliefs::find_leaders() {
  leaders_.clear();
  for (const auto& [point, measured] : points_) {
    if (measured.count > 0) leaders_.push_back(point);
  }
  if (leaders_.size() <= kWindow) return;
  const auto mean = [&](const Point& p) { return points_.at(p).sum_goodness / points_.at(p).count; };
  const auto last = leaders_.begin() + static_cast<std::ptrdiff_t>(kWindow);
  std::partial_sort(leaders_.begin(), last, leaders_.end(), [&](const Point& a, const Point& b) {
    const double left = mean(a), right = mean(b);
    return left != right ? left > right : a < b;
  });
  leaders_.erase(last, leaders_.end());
}

std::optional<Beliefs::Best> Beliefs::best() const {
  if (leaders_.empty()) return std::nullopt;
  const std::vector<Belief> beliefs = speed_.goodness(leaders_);
  size_t best = 0;
  for (size_t i = 1; i < leaders_.size(); ++i) {
    if (beliefs[i].mean > beliefs[best].mean) best = i;
  }
  return Best{leaders_[best], points_.at(leaders_[best]).first, beliefs[best]};
}

}  // namespace dsat::guided
