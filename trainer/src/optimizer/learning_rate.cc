// The height of DeepSpeed's warm-up schedules at an update, as a closed formula.
// DeepSpeed's scheduler steps after the update, which shifts its count by one.
#include "optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace dsat::trainer {
namespace {

// The share of the way from min_lr to max_lr. DeepSpeed's scheduler steps after the update: `last` counts its steps
// from 0, and before the first of them the rate is min_lr, as in DeepSpeed from 0.15.3 on.
double height(const ScheduleSettings& s, int64_t last) {
  if (last < 0) return 0;
  const auto at = static_cast<double>(last);
  const auto warm = static_cast<double>(s.warmup_steps);
  if (last < s.warmup_steps) return s.logarithmic ? std::log(at + 1) / std::log(warm) : at / warm;
  if (s.kind == ScheduleSettings::Kind::warmup) return 1;
  const auto total = static_cast<double>(s.total_steps);
  return std::max(0.0, (total - at) / std::max(1.0, total - warm));
}

}  // namespace

double learning_rate(const ScheduleSettings& s, double constant, int64_t updates) {
  if (s.kind == ScheduleSettings::Kind::constant) return constant;
  return s.min_lr + (s.max_lr - s.min_lr) * height(s, updates - 1);
}

}  // namespace dsat::trainer
