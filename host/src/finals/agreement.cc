// Differences are shares of the larger of a step's own value and a twentieth of the largest so far: a loss that comes
// near 0 would make every difference look large.
#include "finals/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::host {
namespace {

using Values = std::vector<std::optional<double>>;

constexpr double kFloor = 0.001, kFloorOfFp16 = 0.01, kFloorOfBf16 = 0.02;
// Two runs show less than the most that runs may differ by.
constexpr double kBeyondRuns = 3;
constexpr double kLeastShare = 0.05;

// At one batch the first norms of two trainings are the same; at two batches samples differ as well.
constexpr double kSameBatchFactor = 1.5, kOtherBatchFactor = 2.5;
constexpr size_t kFirstSteps = 3, kLeastSteps = 2;

// A loss that does not move at all, while the user's own moves by many times what rounding hides.
constexpr size_t kLeastToBeStuck = 4;
constexpr double kMoves = 10, kStuckShare = 0.01;

bool is_on(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  return value != nullptr && (*value == true || *value == "auto");
}

const char* name_of(bool is_of_loss) { return is_of_loss ? "loss" : "gradient norm"; }

bool are_comparable(const Values& a, const Values& b, size_t step) {
  return step < a.size() && step < b.size() && a[step] && b[step] && std::isfinite(*a[step]) && std::isfinite(*b[step]);
}

// By what a difference at this step is divided.
double scale_at(const Values& own, size_t step) {
  double largest = 0;
  for (size_t i = 0; i <= step; ++i) {
    if (own[i] && std::isfinite(*own[i])) largest = std::max(largest, std::abs(*own[i]));
  }
  return std::max({std::abs(*own[step]), kLeastShare * largest, 1e-30});
}

double share(const Values& own, const Values& other, size_t step) {
  return std::abs(*other[step] - *own[step]) / scale_at(own, step);
}

std::optional<std::pair<double, double>> range_of(const Values& values) {
  std::optional<std::pair<double, double>> range;
  size_t count = 0;
  for (const auto& value : values) {
    if (!value || !std::isfinite(*value)) continue;
    ++count;
    if (!range) range = {*value, *value};
    range->first = std::min(range->first, *value);
    range->second = std::max(range->second, *value);
  }
  return count < kLeastToBeStuck ? std::nullopt : range;
}

double relative_width(const std::pair<double, double>& range) {
  const double size = std::max(std::abs(range.first), std::abs(range.second));
  return size > 0 ? (range.second - range.first) / size : 0;
}

}  // namespace

std::string describe(const Mismatch& mismatch) {
  const auto texts = [&](int digits) {
    return std::pair(fmt::format("{:.{}g}", mismatch.own, digits), fmt::format("{:.{}g}", mismatch.other, digits));
  };
  auto [own, other] = texts(3);
  for (int digits = 4; own == other && digits <= 17; ++digits) std::tie(own, other) = texts(digits);
  return fmt::format("the {} is {} in place of {} at step {}", name_of(mismatch.is_of_loss), other, own,
                     mismatch.step + 1);
}

std::string describe_not_finite(const Mismatch& mismatch) {
  return fmt::format("the {} is {} at step {}", name_of(mismatch.is_of_loss), mismatch.other, mismatch.step + 1);
}

double band_floor(const Json& config) {
  if (is_on(config, config::bf16_key(config))) return kFloorOfBf16;
  const Json* autocast = config::find(config, "torch_autocast.enabled");
  if (autocast != nullptr && *autocast == true) return kFloorOfBf16;
  if (is_on(config, "fp16.enabled") || is_on(config, "amp.enabled")) return kFloorOfFp16;
  const Json* sent = config::find(config, "communication_data_type");
  if (sent != nullptr && sent->is_string() && *sent != "fp32") return *sent == "fp16" ? kFloorOfFp16 : kFloorOfBf16;
  return kFloor;
}

Band::Band(std::vector<Curve> runs, double floor) {
  std::vector<Values> losses, grad_norms;
  for (Curve& run : runs) {
    losses.push_back(std::move(run.losses));
    grad_norms.push_back(std::move(run.grad_norms));
  }
  losses_ = series_of(losses, floor);
  grad_norms_ = series_of(grad_norms, floor);
}

Band::Series Band::series_of(const std::vector<Values>& runs, double floor) {
  Series series;
  if (runs.empty()) return series;
  series.own = runs.front();
  double spread = 0;
  size_t known = 0;
  for (size_t step = 0; step < series.own.size(); ++step) {
    for (const Values& run : runs) {
      if (are_comparable(series.own, run, step)) spread = std::max(spread, share(series.own, run, step));
    }
    const double width = std::max(floor * std::sqrt(static_cast<double>(step + 1)), kBeyondRuns * spread);
    series.width.push_back(width);
    if (!series.own[step] || ++known > kFirstSteps) continue;
    series.first_spread = spread;
    series.is_random = kBeyondRuns * spread > kRandom;
  }
  return series;
}

std::string Band::why_random() const {
  for (const Series* series : {&losses_, &grad_norms_}) {
    if (!series->is_random) continue;
    return fmt::format(
        "two runs of your own configuration differ by {:.0f} % in the {} of their first steps, which is random",
        100 * series->first_spread, name_of(series == &losses_));
  }
  return "";
}

std::optional<Mismatch> Band::leaves(const Curve& curve) const {
  std::optional<Mismatch> first;
  const auto look = [&](const Series& series, const Values& other, bool is_of_loss) {
    for (size_t step = 0; step < std::min(series.own.size(), other.size()) && !series.is_random; ++step) {
      if (first && step >= first->step) return;
      if (!series.own[step] || !other[step]) continue;
      if (!std::isfinite(*series.own[step])) return;  // from here on the user's own says nothing
      const bool agrees = std::isfinite(*other[step]) && share(series.own, other, step) <= series.width[step];
      if (!agrees) first = Mismatch{is_of_loss, step, *series.own[step], *other[step]};
    }
  };
  look(losses_, curve.losses, true);
  look(grad_norms_, curve.grad_norms, false);
  return first;
}

size_t Band::compared(const Curve& curve) const {
  size_t count = 0;
  const auto add = [&](const Series& series, const Values& other) {
    for (size_t step = 0; step < other.size() && !series.is_random; ++step) {
      count += step < series.own.size() && series.own[step] && std::isfinite(*series.own[step]) && other[step] ? 1 : 0;
    }
  };
  add(losses_, curve.losses);
  add(grad_norms_, curve.grad_norms);
  return count;
}

double Band::farthest(const Curve& curve) const {
  double most = 0;
  const auto add = [&](const Series& series, const Values& other) {
    for (size_t step = 0; step < other.size() && !series.is_random; ++step) {
      if (are_comparable(series.own, other, step)) most = std::max(most, share(series.own, other, step));
    }
  };
  add(losses_, curve.losses);
  add(grad_norms_, curve.grad_norms);
  return most;
}

std::optional<Mismatch> first_not_finite(const Curve& curve) {
  std::optional<Mismatch> first;
  for (const bool is_of_loss : {true, false}) {
    const Values& values = is_of_loss ? curve.losses : curve.grad_norms;
    for (size_t step = 0; step < values.size(); ++step) {
      if (!values[step] || std::isfinite(*values[step])) continue;
      if (!first || step < first->step) first = Mismatch{is_of_loss, step, 0, *values[step]};
      break;
    }
  }
  return first;
}

std::string what_does_not_scale(const BatchOf& own, const BatchOf& other) {
  const double batches =
      static_cast<double>(own.train_batch) / static_cast<double>(std::max<int64_t>(1, other.train_batch));
  const double factor = own.train_batch == other.train_batch ? kSameBatchFactor : kOtherBatchFactor;
  const double least = std::min(1.0, std::sqrt(batches)) / factor, most = std::max(1.0, std::sqrt(batches)) * factor;
  size_t steps = 0, low = 0, high = 0;
  const Values &a = own.curve.grad_norms, &b = other.curve.grad_norms;
  std::optional<size_t> first;
  for (size_t step = 0; step < std::min(a.size(), b.size()) && steps < kFirstSteps; ++step) {
    if (!are_comparable(a, b, step) || *a[step] <= 0) continue;
    ++steps;
    if (!first) first = step;
    const double ratio = *b[step] / *a[step];
    low += ratio < least ? 1 : 0;
    high += ratio > most ? 1 : 0;
  }
  if (steps < kLeastSteps || (low < steps && high < steps)) return "";
  return fmt::format(
      "the gradient norm is {:.3g} in place of {:.3g} at step {}, and the batch ({} in place of {}) "
      "explains {:.2g} to {:.2g} times",
      *b[*first], *a[*first], *first + 1, other.train_batch, own.train_batch, least * factor, most / factor);
}

std::string what_is_stuck(const Curve& own, const Curve& other, double floor) {
  const auto of_own = range_of(own.losses), of_other = range_of(other.losses);
  if (!of_own || !of_other) return "";
  const double moves = relative_width(*of_own);
  if (moves < kMoves * floor || relative_width(*of_other) > kStuckShare * moves) return "";
  return fmt::format("the loss stays at {:.3g}; that of your own configuration lies between {:.3g} and {:.3g}",
                     of_other->first, of_own->first, of_own->second);
}

}  // namespace dsat::host
