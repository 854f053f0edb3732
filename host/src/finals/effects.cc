// Sums kernels, chooses the sizes of the parts from a grid by the marginal likelihood, and predicts differences.
#include "finals/effects.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "dsat/config/batch.h"
#include "dsat/config/defaults.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::host {
namespace {

// More would cost seconds; the best are those that are compared.
constexpr size_t kMostMeasurements = 150;
// Logarithms of micro batches over which throughput, its small steps, and the effects of keys change.
constexpr double kBroad = 1.5, kNarrow = 0.3;
constexpr double kOtherStage = 0.5;  // how much of a key's effect two stages share
constexpr double kDecade = 2.302585;

// Standard deviations of the parts.
struct Sizes {
  double keys, stage, steps;
};
constexpr double kKeySizes[] = {0.003, 0.01, 0.03, 0.1}, kStageSizes[] = {0.03, 0.2}, kStepSizes[] = {0.01, 0.05};
constexpr double kLevel = 1, kTrend = 0.7;  // of the whole, and along the micro batch: broad, since trials tell them

double square(double x) { return x * x; }
double bell(double distance, double width) { return std::exp(-0.5 * square(distance / width)); }

// 1: the same value; 0: nothing in common.
double similarity(const Json& a, const Json& b) {
  if (a == b) return 1;
  if (!a.is_number() || !b.is_number()) return 0;
  const double x = a.get<double>(), y = b.get<double>();
  return x > 0 && y > 0 ? std::exp(-std::abs(std::log(x / y)) / kDecade) : 0;
}

double covariance(const Choices& a, const Choices& b, const Sizes& sizes) {
  const double apart = a.log_micro_batch - b.log_micro_batch;
  const double broad = bell(apart, kBroad), same_stage = a.stage == b.stage ? 1 : 0;
  double keys = 0, together = same_stage;
  for (const auto& [key, value] : a.values) {
    const auto other = b.values.find(key);
    if (other == b.values.end()) continue;
    const double alike = similarity(value, other->second);
    keys += alike;
    together *= alike;
  }
  const double shared = same_stage + (1 - same_stage) * kOtherStage;
  return square(kLevel) + square(kTrend) * broad + square(sizes.steps) * bell(apart, kNarrow) +
         square(sizes.stage) * same_stage * broad + square(sizes.keys) * broad * (shared * keys + together);
}

}  // namespace

Choices choices_of(const Json& config, const config::Space& space) {
  Choices choices;
  choices.stage = config::zero_stage(config);
  choices.log_micro_batch = std::log(std::max(1.0, config.value(config::kMicroBatchKey, 1.0)));
  const config::StageSpace* stage = space.stage(choices.stage);
  if (stage == nullptr) return choices;
  for (const config::Axis& axis : stage->axes) {
    const Json* given = config::find(config, axis.key);
    const bool is_given = given != nullptr && !given->is_null();
    choices.values[axis.key] = is_given ? *given : config::deepspeed_default(axis.key, choices.stage);
  }
  return choices;
}

struct Effects::Fit {
  std::vector<Measurement> measured;
  Sizes sizes{};
  Eigen::LLT<Eigen::MatrixXd> factor;
  Eigen::VectorXd weights;
  double evidence = -1e300;

  Fit(const std::vector<Measurement>& given, double noise_variance, const Sizes& chosen)
      : measured(given), sizes(chosen) {
    const auto count = static_cast<Eigen::Index>(measured.size());
    Eigen::MatrixXd covariances(count, count);
    Eigen::VectorXd values(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      values[i] = at(i).value - measured.front().value;
      for (Eigen::Index j = 0; j <= i; ++j) {
        covariances(i, j) = covariances(j, i) = covariance(at(i).choices, at(j).choices, sizes);
      }
      covariances(i, i) += noise_variance;
    }
    factor.compute(covariances);
    weights = factor.solve(values);
    evidence = -0.5 * values.dot(weights) - factor.matrixL().toDenseMatrix().diagonal().array().log().sum();
  }
  const Measurement& at(Eigen::Index i) const { return measured[static_cast<size_t>(i)]; }
};

Effects::Effects(std::vector<Measurement> measured, double noise_variance) {
  std::stable_sort(measured.begin(), measured.end(),
                   [](const Measurement& a, const Measurement& b) { return a.value > b.value; });
  if (measured.size() > kMostMeasurements) measured.resize(kMostMeasurements);
  if (measured.empty()) return;
  for (const double keys : kKeySizes) {
    for (const double stage : kStageSizes) {
      for (const double steps : kStepSizes) {
        auto fit = std::make_unique<const Fit>(measured, noise_variance, Sizes{keys, stage, steps});
        if (fit_ == nullptr || fit->evidence > fit_->evidence) fit_ = std::move(fit);
      }
    }
  }
}

Effects::Effects(Effects&&) noexcept = default;
Effects::~Effects() = default;

Effects::Loss Effects::loss(const Choices& from, const Choices& to) const {
  if (fit_ == nullptr) return {};
  const auto count = static_cast<Eigen::Index>(fit_->measured.size());
  Eigen::VectorXd difference(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Choices& seen = fit_->at(i).choices;
    difference[i] = covariance(from, seen, fit_->sizes) - covariance(to, seen, fit_->sizes);
  }
  const double prior =
      covariance(from, from, fit_->sizes) + covariance(to, to, fit_->sizes) - 2 * covariance(from, to, fit_->sizes);
  const double known = difference.dot(fit_->factor.solve(difference));
  return {difference.dot(fit_->weights), std::sqrt(std::max(0.0, prior - known))};
}

}  // namespace dsat::host
