// Compares the means of configurations. The choice changes if a trial was named, failed when it ran again, or needs too
// much memory. BestSoFar looks at the new trial alone if that is enough.
#include "study/state/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/host/format.h"
#include "finals/ignored_configuration.h"
#include "finals/twin.h"
#include "finals/verification.h"

namespace dsat::host {
namespace {

// A value that `brief` shows as "143 ms", with more digits in the same unit: "143.1 ms".
std::string with_digits(double value, const std::string& brief, int digits) {
  const double unit = std::pow(10.0, std::round(std::log10(value / std::strtod(brief.c_str(), nullptr))));
  return fmt::format("{:.{}g}{}", value / unit, digits, brief.substr(brief.find(' ')));
}

// Two different values in the metric's unit, with as many digits as it takes.
std::pair<std::string, std::string> distinguishable(const std::string& metric, double a, double b) {
  const std::pair<std::string, std::string> short_ones{format_metric(metric, a), format_metric(metric, b)};
  if (short_ones.first != short_ones.second) return short_ones;
  constexpr int kFewest = 4, kAll = 17;
  const auto text_of = [&](double value, int digits) { return with_digits(value, short_ones.first, digits); };
  int digits = kFewest;
  while (digits < kAll && text_of(a, digits) == text_of(b, digits)) ++digits;
  return {text_of(a, digits), text_of(b, digits)};
}

// A searcher that asked for this configuration knows it, even if it names another one as the best.
bool was_asked_for(const std::vector<Trial>& trials, const std::string& identity) {
  return std::any_of(trials.begin(), trials.end(),
                     [&](const Trial& trial) { return trial.is_asked_for && trial.identity == identity; });
}

// Whether the trial speaks against its configuration: it failed when it was measured again, memory ran out in it, or it
// learns something else.
bool is_doubtful(const Trial& trial) {
  return fails_again(trial) || trial.record.outcome == Outcome::diverged || (trial.end && trial.end->ran_short);
}

}  // namespace

std::vector<MeasuredConfiguration> candidates_for_best(const std::vector<Trial>& trials, const std::string& metric,
                                                       const BestRules& rules) {
  std::set<std::string> refuted, doubtful, wrong_keys;
  for (const Trial& trial : trials) {
    if (fails_verification(trial) || trial.record.outcome == Outcome::diverged) refuted.insert(trial.identity);
    if (is_wrong_twin(trial)) wrong_keys.insert(keys_of(trial.record.config));
    if (is_doubtful(trial)) doubtful.insert(trial.identity);
  }
  std::vector<MeasuredConfiguration> all = measured_configurations(trials, metric);
  const auto is_out = [&](const MeasuredConfiguration& one) {
    return refuted.count(trials[one.trial].identity) != 0 ||
           (!wrong_keys.empty() && wrong_keys.count(keys_of(trials[one.trial].record.config)) != 0) ||
           !may_become_best(one.peak_bytes, rules.usable_memory_bytes);
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_out), all.end());
  const auto first_doubtful = std::stable_partition(
      all.begin(), all.end(), [&](const auto& one) { return doubtful.count(trials[one.trial].identity) == 0; });
  if (first_doubtful != all.begin()) all.erase(first_doubtful, all.end());
  return all;
}

Json best_config(Json trial_config, bool has_train_batch) {
  // The section also sets the size of a trial; in the training the command does.
  config::erase(trial_config, "autotuning");
  if (!has_train_batch) config::erase(trial_config, config::kTrainBatchKey);
  return trial_config;
}

std::optional<BestRecord> choose_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                      std::optional<uint64_t> named, const BestRules& rules) {
  const std::vector<MeasuredConfiguration> all = candidates_for_best(trials, metric, rules);
  if (all.empty() || proof_of_ignored_configuration(trials)) return std::nullopt;
  const auto better = [&](const MeasuredConfiguration& a, const MeasuredConfiguration& b) {
    return maximise ? a.metric > b.metric : a.metric < b.metric;
  };
  const double extreme = std::min_element(all.begin(), all.end(), better)->metric;
  const auto is_fastest = [&](const MeasuredConfiguration& one) { return is_tie(one.metric, extreme); };
  const MeasuredConfiguration* fastest = &*std::find_if(all.begin(), all.end(), is_fastest);
  const MeasuredConfiguration* best = fastest;
  if (named && *named < trials.size() && was_asked_for(trials, trials[fastest->trial].identity)) {
    for (const MeasuredConfiguration& measured : all) {
      if (trials[measured.trial].identity == trials[*named].identity) best = &measured;
    }
  }
  // A searcher may name any of several tied configurations. The host's own choice, measured again or verified, stays.
  if (!rules.measured_again && is_tie(best->metric, fastest->metric)) best = fastest;
  BestRecord record{best->trial, best_config(trials[best->trial].record.config, rules.has_train_batch), best->metrics,
                    best->metric, ""};
  if (!is_tie(best->metric, fastest->metric)) {
    const auto [of_named, of_fastest] = distinguishable(metric, best->metric, fastest->metric);
    record.why = fmt::format("{} trial {} ({}) as the best; the best measured is trial {} ({})",
                             rules.measured_again ? "measuring again leaves" : "the searcher names", best->trial,
                             of_named, fastest->trial, of_fastest);
  }
  return record;
}

// One more measured configuration leaves the means of the others as they are: either it is the best, or nothing
// changes. A second measurement of a configuration, or a trial that the searcher named, calls for a comparison of all.
void BestSoFar::add(const Trial& trial) {
  const TrialRecord& record = trial.record;
  stale_ = stale_ || is_doubtful(trial);
  if (record.outcome != Outcome::completed || record.duplicate_of || !record.metrics.is_object()) return;
  if (trial.earlier_runs == 0 && !may_become_best(record.peak_bytes, rules_.usable_memory_bytes)) return;
  const auto metric = record.metrics.find(metric_);
  if (metric == record.metrics.end() || !metric->is_number()) return;
  stale_ = stale_ || trial.earlier_runs > 0 || named_ || is_best_doubtful_;
  const double value = metric->get<double>();
  if (!best_ || better(value, best_->metric)) {
    const bool tie = candidate_ && is_tie(value, candidate_->metric);
    if (!candidate_ || better(value, candidate_->metric)) {
      candidate_ =
          BestRecord{trial.id(), best_config(record.config, rules_.has_train_batch), record.metrics, value, ""};
    }
    stale_ = stale_ || tie;
  } else if (is_tie(value, best_->metric) && trial.id() < best_->trial) {
    stale_ = true;
  }
}

void BestSoFar::set_named(std::optional<uint64_t> trial, bool measured_again) {
  named_ = trial;
  rules_.measured_again = measured_again;
  stale_ = true;
}

void BestSoFar::set_usable_memory(std::optional<uint64_t> bytes) {
  if (rules_.usable_memory_bytes == bytes) return;
  rules_.usable_memory_bytes = bytes;
  stale_ = true;
}

void BestSoFar::set_has_train_batch(bool has_it) {
  if (rules_.has_train_batch == has_it) return;
  rules_.has_train_batch = has_it;
  stale_ = true;
}

bool BestSoFar::refresh(const std::vector<Trial>& trials) {
  std::optional<BestRecord> best = std::exchange(candidate_, std::nullopt);
  const bool all_anew = std::exchange(stale_, false);
  if (all_anew) {
    best = choose_best(trials, metric_, maximise_, named_, rules_);
    is_best_doubtful_ = best && std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
                          return is_doubtful(trial) && trial.identity == trials[best->trial].identity;
                        });
  }
  if (!best) return all_anew && std::exchange(best_, std::nullopt).has_value();
  const bool changed =
      !best_ || best_->trial != best->trial || best_->metric != best->metric || best_->why != best->why;
  if (changed) best_ = std::move(best);
  return changed;
}

}  // namespace dsat::host
