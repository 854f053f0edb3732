// The best goes first, since its earlier measurements do not count; then the two take turns.
#include "finals/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/config/json.h"
#include "finals/drift.h"
#include "finals/finals.h"

namespace dsat::host {

void BestAgainstOwn::start(const Json& brief) {
  metric_ = brief.at("metric").get<std::string>();
  maximise_ = brief.at("maximise").get<bool>();
  reason_ = brief.at("reason").get<std::string>();
  budget_ = config::whole_number<int>(brief.at("budget"));
  others_ = repeats_from_json(brief.at("others"));
  const Json &best = brief.at("best"), &own = brief.at("own");
  best_.trial = config::whole_number<uint64_t>(best.at("trial"));
  best_.overrides = best.at("overrides");
  best_.before = best.at("values").get<std::vector<double>>();
  best_.values = best.value("after", std::vector<double>());
  own_.trial = config::whole_number<uint64_t>(own.at("trial"));
  own_.overrides = own.at("overrides");
  own_.before = own.at("values").get<std::vector<double>>();
  own_may_win_ = brief.at("own_may_win").get<bool>();
  next();
}

void BestAgainstOwn::trial_ended(const Ended& ended) {
  const auto at = std::find_if(open_.begin(), open_.end(), [&](const auto& one) { return one.first == ended.trial; });
  if (at == open_.end()) return;
  Side& side = *at->second;
  open_.erase(at);
  const std::optional<double> value = comparable_value(ended.metrics, metric_, maximise_);
  if (value) side.values.push_back(*value);
  side.fails = !value;
  if (open_.empty()) next();
}

// Nobody chose your own for its measurements, so those from before count too, unless the machine has changed.
std::vector<double> BestAgainstOwn::own_values() const { return comparable(own_.before, own_.values, others_); }

bool BestAgainstOwn::is_narrow() const {
  return !best_.values.empty() && difference(best_.values, own_values(), others_, best_.before).half_width() <= kNarrow;
}

bool BestAgainstOwn::ask_for(Side& side, const char* what) {
  if (budget_ < 1 || side.fails) return false;
  const std::optional<uint64_t> trial =
      ask(side.overrides, fmt::format("{} again, to compare the two: trial {}", what, side.trial), true);
  if (!trial) return false;
  --budget_;
  ++side.asked;
  open_.emplace_back(*trial, &side);
  return true;
}

void BestAgainstOwn::next() {
  const bool enough = best_.asked >= kMostComparisons || is_narrow();
  if (!enough && ask_for(best_, "the best")) ask_for(own_, "your own configuration");
  if (open_.empty()) finish(reason_, is_own_better() ? own_.trial : best_.trial);
}

// These measurements chose neither of the two, so they compare fairly. If they favour the user's own, a change is not
// worth making. Where the budget leaves the own no new measurement, it may be that the machine was faster before.
bool BestAgainstOwn::is_own_better() const {
  const bool is_fair = !best_.values.empty() && (!own_.values.empty() || is_narrow());
  return own_may_win_ && !own_.fails && is_fair && mean_of(best_.values) < mean_of(own_values());
}

}  // namespace dsat::host
