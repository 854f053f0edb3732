// A round is asked for at once and judged when its last trial has ended.
#include "finals/finals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/config/json.h"

namespace dsat::host {
namespace {

constexpr double kRounding = 1e-12;  // of a difference of logarithms

}  // namespace

std::optional<double> comparable_value(const Json& metrics, const std::string& metric, bool maximise) {
  const auto it = metrics.is_object() ? metrics.find(metric) : metrics.end();
  if (it == metrics.end() || !it->is_number()) return std::nullopt;
  const double value = it->get<double>();
  if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
  return maximise ? std::log(value) : -std::log(value);
}

void Finals::start(const Json& brief) {
  metric_ = brief.at("metric").get<std::string>();
  maximise_ = brief.at("maximise").get<bool>();
  reason_ = brief.at("reason").get<std::string>();
  budget_ = config::whole_number<int>(brief.at("budget"));
  others_ = repeats_from_json(brief.at("others"));
  for (const Json& one : brief.at("finalists")) {
    finalists_.push_back({config::whole_number<uint64_t>(one.at("trial")), one.at("overrides"),
                          one.at("values").get<std::vector<double>>(), false});
  }
  next_round();
}

void Finals::trial_ended(const Ended& ended) {
  const auto at = std::find_if(open_.begin(), open_.end(), [&](const auto& one) { return one.first == ended.trial; });
  if (at == open_.end()) return;
  Finalist& finalist = finalists_[at->second];
  open_.erase(at);
  const std::optional<double> value = comparable_value(ended.metrics, metric_, maximise_);
  if (value) finalist.values.push_back(*value);
  if (!value && ended.outcome != Outcome::stopped && ended.outcome != Outcome::lost) finalist.is_out = true;
  if (!open_.empty()) return;
  drop_the_hopeless();
  next_round();
}

// The finalist with the best mean. A tie, or a difference by rounding alone, goes to the earlier one.
const Finals::Finalist* Finals::leader() const {
  const Finalist* best = nullptr;
  for (const Finalist& one : finalists_) {
    if (one.is_out) continue;
    if (best == nullptr || mean_of(one.values) > mean_of(best->values) + kRounding) best = &one;
  }
  return best;
}

void Finals::drop_the_hopeless() {
  const Finalist* best = leader();
  if (best == nullptr) return;
  for (Finalist& one : finalists_) {
    if (one.is_out || &one == best) continue;
    Repeats others = others_;
    for (const Finalist& third : finalists_) {
      if (&third != &one && &third != best) others.add(third.values);
    }
    one.is_out = difference(one.values, best->values, others).chance_above(kTolerance) < kSmallChance;
  }
}

void Finals::next_round() {
  const auto left =
      std::count_if(finalists_.begin(), finalists_.end(), [](const Finalist& one) { return !one.is_out; });
  const Finalist* best = leader();
  if (left < 2 || rounds_ >= kMostRounds || left > budget_) {
    return finish(reason_, best != nullptr ? std::optional<uint64_t>(best->trial) : std::nullopt);
  }
  ++rounds_;
  for (size_t i = 0; i < finalists_.size(); ++i) {
    if (finalists_[i].is_out) continue;
    const std::string note = fmt::format("finals, round {}: trial {} again", rounds_, finalists_[i].trial);
    const std::optional<uint64_t> trial = ask(finalists_[i].overrides, note, true);
    if (!trial) continue;
    --budget_;
    open_.emplace_back(*trial, i);
  }
  if (open_.empty()) finish(reason_, best->trial);
}

}  // namespace dsat::host
