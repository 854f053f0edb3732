// The heights of DeepSpeed's schedules at an update, as closed formulas.
// DeepSpeed's scheduler steps after the update, which shifts its count by one: `last` counts its steps from 0, and is
// -1 before the first of them.
#include "optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace dsat::trainer {
namespace {

constexpr double kPi = 3.14159265358979323846;

// How far a warm-up has come, from 0 to 1.
double warmed_up(const ScheduleSettings& s, int64_t last) {
  const auto at = static_cast<double>(last), warm = static_cast<double>(s.warmup_steps);
  return s.logarithmic ? std::log(at + 1) / std::log(warm) : at / warm;
}

// The share of the way from min_lr to max_lr. Before the first step the rate is min_lr, as in DeepSpeed from 0.15.3 on.
double height(const ScheduleSettings& s, int64_t last) {
  if (last < 0) return 0;
  if (last < s.warmup_steps) return warmed_up(s, last);
  if (s.kind == ScheduleSettings::Kind::warmup) return 1;
  const auto total = static_cast<double>(s.total_steps), warm = static_cast<double>(s.warmup_steps);
  return std::max(0.0, (total - static_cast<double>(last)) / std::max(1.0, total - warm));
}

// A share of the optimizer's own rate.
double cosine_ratio(const ScheduleSettings& s, int64_t last) {
  if (last < 0) return 0;
  if (last < s.warmup_steps) return s.min_ratio + (1 - s.min_ratio) * warmed_up(s, last);
  const auto done = static_cast<double>(last - s.warmup_steps + 1);
  const double progress =
      std::min(1.0, done / static_cast<double>(std::max<int64_t>(1, s.total_steps - s.warmup_steps)));
  return std::max(0.0, s.end_ratio + (1 - s.end_ratio) * (1 + std::cos(kPi * progress)) / 2);
}

// The share of the way from a cycle's minimum to its maximum, `done` updates after its begin.
double cycle_height(const Cycle& c, double done) {
  const double total = c.first_size + c.second_size;
  const double in_cycle = std::fmod(done, total);
  const bool rises = in_cycle <= c.first_size;
  const double way = rises ? in_cycle : total - in_cycle, whole = rises ? c.first_size : c.second_size;
  const auto stairs = static_cast<double>(rises ? c.first_stairs : c.second_stairs);
  // The product first: a quotient may be just below a whole stair.
  return stairs == 0 ? way / whole : std::floor(way * stairs / whole) / stairs;
}

// Intervals of the decay that follows the cycle; negative: the cycle is not over.
double decay_intervals(const Cycle& c, int64_t last) {
  const double behind = static_cast<double>(last) - (c.first_size + c.second_size);
  if (behind < 0) return -1;
  return c.decay_size == 0 ? 0 : (behind + 1) / c.decay_size;
}

double cycle_rate(const ScheduleSettings& s, int64_t last) {
  if (last < 0) return s.min_lr;
  const double decay = decay_intervals(s.cycle, last);
  if (decay >= 0) return s.min_lr / (1 + s.cycle.decay_lr_rate * decay);
  return s.min_lr + (s.max_lr - s.min_lr) * cycle_height(s.cycle, static_cast<double>(last + 1));
}

double range_test_rate(const ScheduleSettings& s, int64_t last) {
  if (last < 0) return s.min_lr;
  const double interval = static_cast<double>(last + 1) / static_cast<double>(s.step_size);
  return s.min_lr * (1 + s.step_rate * (s.is_staircase ? std::floor(interval) : interval));
}

}  // namespace

double learning_rate(const ScheduleSettings& s, double constant, int64_t updates) {
  const int64_t last = updates - 1;
  switch (s.kind) {
    case ScheduleSettings::Kind::constant:
      break;
    case ScheduleSettings::Kind::warmup:
    case ScheduleSettings::Kind::warmup_decay:
      return s.min_lr + (s.max_lr - s.min_lr) * height(s, last);
    case ScheduleSettings::Kind::warmup_cosine:
      return constant * cosine_ratio(s, last);
    case ScheduleSettings::Kind::one_cycle:
      return cycle_rate(s, last);
    case ScheduleSettings::Kind::range_test:
      return range_test_rate(s, last);
  }
  return constant;
}

// The second beta is a constant of DeepSpeed's.
std::optional<Betas> scheduled_betas(const ScheduleSettings& s, int64_t updates) {
  if (s.kind != ScheduleSettings::Kind::one_cycle || !s.cycle.moves_momentum) return std::nullopt;
  constexpr double kBeta2 = 0.99;
  const Cycle& c = s.cycle;
  const int64_t last = updates - 1;
  if (last < 0) return Betas{c.min_momentum, kBeta2};
  const double decay = decay_intervals(c, last);
  if (decay >= 0) return Betas{c.max_momentum * (1 + c.decay_momentum_rate * decay), kBeta2};
  const double height = cycle_height(c, static_cast<double>(last + 1));
  return Betas{c.max_momentum - (c.max_momentum - c.min_momentum) * height, kBeta2};
}

}  // namespace dsat::trainer
