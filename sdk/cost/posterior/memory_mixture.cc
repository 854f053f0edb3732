// The hypotheses' models side by side: all fit the same trials, and their evidence is their weight. Joint draws are
// shared out between the models in proportion to it. Bounds by trials are laid over both.
#include "cost/posterior/memory_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dsat::cost {
namespace {

constexpr double kContradiction = 0.005;  // the chance that a trial contradicts a bound

}  // namespace

MemoryMixture::MemoryMixture(const std::vector<ModelAxis>& axes, const MemoryPrior& prior)
    : bounds_(axes), device_bytes_(prior.device_bytes.value_or(std::numeric_limits<double>::infinity())) {
  for (const MemoryHypothesis& hypothesis : memory_hypotheses(axes)) {
    models_.emplace_back(axes, prior, hypothesis);
    weights_.push_back(hypothesis.has_buffers ? hypothesis.prior : 0);
  }
}

void MemoryMixture::fit(const std::vector<MemoryObservation>& observations, bool tune) {
  buffers_are_whole_ = std::none_of(observations.begin(), observations.end(), [this](const MemoryObservation& seen) {
    return seen.fits && seen.point.arm->buffer_bytes > device_bytes_;
  });
  const auto is_in_question = [this](const MemoryModel& model) {
    return model.hypothesis().has_buffers || !buffers_are_whole_;
  };
  double most = -std::numeric_limits<double>::infinity();
  for (MemoryModel& model : models_) {
    if (!is_in_question(model)) continue;
    model.fit(observations, tune);
    most = std::max(most, model.log_evidence());
  }
  for (size_t i = 0; i < models_.size(); ++i) {
    weights_[i] = is_in_question(models_[i]) ? std::exp(models_[i].log_evidence() - most) : 0;
  }
  find_bounds(observations);
}

template <class Value>
double MemoryMixture::mean(const Value& value) const {
  constexpr double kNegligible = 1e-3;  // of the heaviest hypothesis's weight
  double sum = 0, weights = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (weights_[i] < kNegligible) continue;
    sum += weights_[i] * value(models_[i]);
    weights += weights_[i];
  }
  return sum / weights;
}

// A failure that measured peaks rule out is no bound for others: the models know how far such a cause reaches. Only
// trials that share its values of unknown effect rule it out: the same recomputation, for instance. Where a failure
// contradicts what followed from trials that completed, less is taken to follow: nothing across stages first, then
// nothing across arms.
void MemoryMixture::find_bounds(const std::vector<MemoryObservation>& observations) {
  constexpr double kRuledOut = 0.5;
  // Trials completed, but none of them can rule this failure out.
  const auto is_incomparable = [&](size_t i) {
    bool any_other = false;
    for (const MemoryObservation& other : observations) {
      if (!other.fits) continue;
      if (bounds_.share_unknown_values(*other.point.arm, *observations[i].point.arm)) return false;
      any_other = true;
    }
    return any_other;
  };
  std::vector<bool> counts(observations.size());
  for (size_t i = 0; i < observations.size(); ++i) {
    counts[i] = observations[i].fits || is_incomparable(i) ||
                mean([i](const MemoryModel& model) { return model.unexplained(i); }) < kRuledOut;
  }
  const auto contradicts = [&](size_t i) {
    const MemoryPoint& point = observations[i].point;
    return !observations[i].fits && point.micro_batch <= bounds_of(*point.arm).fits;
  };
  using Reach = MemoryBounds::Reach;
  for (const Reach reach : {Reach::all, Reach::stage, Reach::arm}) {
    bounds_.clear(reach);
    cached_arm_ = nullptr;
    for (size_t i = 0; i < observations.size(); ++i) {
      if (counts[i]) bounds_.add(observations[i].point, observations[i].fits);
    }
    contradicted_ = false;
    bool by_a_bound = false;
    for (size_t i = 0; i < observations.size(); ++i) {
      if (!contradicts(i)) continue;
      contradicted_ = true;
      by_a_bound = by_a_bound || counts[i];
    }
    if (!by_a_bound) break;
  }
}

Eigen::MatrixXd MemoryMixture::draw_fits(const std::vector<MemoryPoint>& points, Eigen::Index draws,
                                         Random& random) const {
  double weights = 0;
  for (size_t i = 0; i < models_.size(); ++i) weights += weights_[i] * models_[i].hypothesis().concurrent_factor;
  Eigen::MatrixXd fits(static_cast<Eigen::Index>(points.size()), draws);
  double so_far = 0;
  Eigen::Index first = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    so_far += weights_[i] * models_[i].hypothesis().concurrent_factor;
    const Eigen::Index last = std::llround(so_far / weights * static_cast<double>(draws));
    if (last > first) fits.middleCols(first, last - first) = models_[i].draw_fits(points, last - first, random);
    first = last;
  }
  // In a draw that contradicts a bound all bounds are off, since their common cause is then the device.
  Eigen::ArrayXd bounded(draws), chance(draws);
  for (double& holds : bounded) holds = random.uniform() < kContradiction ? 0 : 1;
  for (double& one : chance) one = contradicted_ ? random.uniform() : 1;
  for (size_t i = 0; i < points.size(); ++i) {
    const MemoryBounds::Range& known = bounds_of(*points[i].arm);
    auto row = fits.row(static_cast<Eigen::Index>(i)).array();
    if (points[i].micro_batch <= known.fits) {
      row = row.max((bounded * (chance >= surprise(points[i])).cast<double>()).transpose());
    }
    if (points[i].micro_batch >= known.too_big) row = row.min(1 - bounded.transpose());
  }
  return fits;
}

// Callers ask about all points of an arm in a row. Buffers of the engine are whole from the start: where they alone
// exceed the device, nothing fits, whatever a hypothesis makes of trials that it cannot explain; unless one did fit,
// so that this engine has no such buffers.
const MemoryBounds::Range& MemoryMixture::bounds_of(const MemoryArm& arm) const {
  if (cached_arm_ != &arm) {
    cached_arm_ = &arm;
    cached_range_ = bounds_.of(arm);
    if (buffers_are_whole_ && arm.buffer_bytes > device_bytes_) cached_range_.too_big = cached_range_.fits + 1;
  }
  return cached_range_;
}

// Where a trial has contradicted a bound, its cause may hold for other points near it.
double MemoryMixture::surprise(const MemoryPoint& point) const {
  return contradicted_ ? mean([&](const MemoryModel& model) { return model.surprise(point); }) : 0;
}

double MemoryMixture::probability_of_fitting(const MemoryPoint& point) const {
  const MemoryBounds::Range& known = bounds_of(*point.arm);
  const double predicted = mean([&](const MemoryModel& model) { return model.probability_of_fitting(point); });
  if (point.micro_batch >= known.too_big) return kContradiction * predicted;
  if (point.micro_batch > known.fits) return predicted;
  return (1 - kContradiction) * (1 - surprise(point)) + kContradiction * predicted;
}

template <class Value>
Believed MemoryMixture::by_formula(const Value& value) const {
  double weights = 0, mean = 0, squares = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i].hypothesis().by_formula || weights_[i] == 0) continue;
    const Believed one = value(models_[i]);
    weights += weights_[i];
    mean += weights_[i] * one.mean;
    squares += weights_[i] * (one.variance + one.mean * one.mean);
  }
  mean /= weights;
  return {mean, std::max(0.0, squares / weights - mean * mean)};
}

Believed MemoryMixture::peak(const MemoryPoint& point) const {
  return by_formula([&](const MemoryModel& model) { return model.peak(point); });
}

Believed MemoryMixture::fixed() const {
  return by_formula([](const MemoryModel& model) { return model.fixed(); });
}

Believed MemoryMixture::activation() const {
  return by_formula([](const MemoryModel& model) { return model.activation(); });
}

double MemoryMixture::formula_probability() const {
  return weights_.front() / std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

}  // namespace dsat::cost
