// A round is asked for at once and judged when its last trial has ended.
#include "finals/finals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/config/json.h"
#include "finals/drift.h"

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
    finalists_.push_back({config::whole_number<uint64_t>(one.at("trial")),
                          one.at("overrides"),
                          one.at("values").get<std::vector<double>>(),
                          {},
                          false});
  }
  rivals_ = finalists_.size();
  for (const Json& one : brief.value("simpler", Json::array())) simpler_.push_back(simpler_from_json(one));
  next();
}

void Finals::trial_ended(const Ended& ended) {
  const auto at = std::find_if(open_.begin(), open_.end(), [&](const auto& one) { return one.first == ended.trial; });
  if (at == open_.end()) return;
  Finalist& finalist = finalists_[at->second];
  open_.erase(at);
  const std::optional<double> value = comparable_value(ended.metrics, metric_, maximise_);
  if (value) finalist.now.push_back(*value);
  const bool is_no_failure = ended.outcome == Outcome::stopped || ended.outcome == Outcome::lost;
  if (!value && (!is_no_failure || values_of(finalist).empty())) finalist.is_out = true;
  if (!open_.empty()) return;
  drop_the_hopeless();
  next();
}

// The rival with the best mean. A tie, or a difference by rounding alone, goes to the earlier one.
const Finals::Finalist* Finals::leader() const {
  const Finalist* best = nullptr;
  for (size_t i = 0; i < rivals_; ++i) {
    const Finalist& one = finalists_[i];
    if (one.is_out) continue;
    if (best == nullptr || mean_of(values_of(one)) > mean_of(values_of(*best)) + kRounding) best = &one;
  }
  return best;
}

const Finals::Finalist* Finals::simple() const {
  return finalists_.size() > rivals_ && !finalists_.back().is_out ? &finalists_.back() : nullptr;
}

const Finals::Finalist* Finals::winner() const { return simple() != nullptr ? simple() : leader(); }

// A finalist from before a change of the machine counts by its new measurements alone.
std::vector<double> Finals::values_of(const Finalist& one) const { return comparable(one.before, one.now, others_); }

Repeats Finals::repeats_but(const Finalist& a, const Finalist& b) const {
  Repeats others = others_;
  for (const Finalist& third : finalists_) {
    if (&third != &a && &third != &b) others.add(values_of(third));
  }
  return others;
}

void Finals::drop_the_hopeless() {
  const Finalist* best = leader();
  if (best == nullptr) return;
  for (Finalist& one : finalists_) {
    if (one.is_out || &one == best) continue;
    const Repeats others = repeats_but(one, *best);
    const size_t index = static_cast<size_t>(&one - finalists_.data());
    one.is_out = index < rivals_ ? gain_of_another(values_of(one), values_of(*best), others) < kTolerance
                                 : is_clearly_slower(simpler_[index - rivals_],
                                                     difference(values_of(*best), values_of(one), others), kTolerance);
  }
}

void Finals::next() {
  if (!try_simpler()) next_round();
}

bool Finals::measure(size_t finalist, const std::string& note, bool repeat) {
  const std::optional<uint64_t> trial = ask(finalists_[finalist].overrides, note, repeat);
  if (!trial) return false;
  if (!repeat) finalists_[finalist].trial = *trial;
  --budget_;
  open_.emplace_back(*trial, finalist);
  return true;
}

bool Finals::try_simpler() {
  const size_t tried = finalists_.size() - rivals_;
  if (simple() != nullptr || tried >= simpler_.size() || budget_ < 1) return false;
  finalists_.push_back({0, simpler_[tried].overrides, {}, {}, false});
  if (measure(finalists_.size() - 1, simpler_[tried].note, false)) return true;
  finalists_.pop_back();
  return false;
}

void Finals::next_round() {
  const auto is_in = [](const Finalist& one) { return !one.is_out; };
  const auto rivals =
      std::count_if(finalists_.begin(), finalists_.begin() + static_cast<std::ptrdiff_t>(rivals_), is_in);
  const auto left = std::count_if(finalists_.begin(), finalists_.end(), is_in);
  const Finalist* best = winner();
  if (rivals < 2 || rounds_ >= kMostRounds || left > budget_) {
    return finish(reason_, best != nullptr ? std::optional<uint64_t>(best->trial) : std::nullopt);
  }
  ++rounds_;
  for (size_t i = 0; i < finalists_.size(); ++i) {
    if (finalists_[i].is_out) continue;
    measure(i, fmt::format("finals, round {}: trial {} again", rounds_, finalists_[i].trial), true);
  }
  if (open_.empty()) finish(reason_, best->trial);
}

}  // namespace dsat::host
