// Computes times, counts and device-hours of a study from its trials' times. The pace ignores pauses: only time in
// which a trial ran counts, so a resumed study has the same pace.
#include <algorithm>

#include "base/clock.h"
#include "dsat/config/json_numbers.h"
#include "facts/sections.h"
#include "record/trial.h"

namespace dsat::host {
namespace {

using Seconds = std::chrono::duration<double>;

double seconds_between(Time from, Time to) { return std::max(0.0, Seconds(to - from).count()); }

struct Run {
  Time from, to;
};

// Returns the runs by start time.
std::vector<Run> runs_of(const StudyFacts& facts, Time now) {
  std::vector<Run> runs;
  for (const TrialRecord& record : facts.record.trials) {
    const auto from = parse_rfc3339(record.started_at);
    if (!from) continue;
    const auto to = parse_rfc3339(record.ended_at);
    if (to || facts.trials[record.id].place == TrialPlace::running) runs.push_back({*from, to.value_or(now)});
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.from < b.from; });
  return runs;
}

// Returns the time in which at least one trial ran.
double busy_seconds(const std::vector<Run>& runs) {
  double busy = 0;
  Time until{};
  for (const Run& run : runs) {
    busy += seconds_between(std::max(run.from, until), run.to);
    until = std::max(until, run.to);
  }
  return busy;
}

std::optional<double> positive(const std::optional<double>& value) {
  return value && *value > 0 ? value : std::nullopt;
}

// Returns the mean over all trials of a configuration.
std::optional<double> mean_throughput(const StudyFacts& facts, uint64_t trial) {
  double sum = 0;
  int count = 0;
  for (const TrialRecord& record : facts.record.trials) {
    const bool same = record.id == trial || record.config == facts.record.trials[trial].config;
    if (!same || record.duplicate_of || record.outcome != Outcome::completed) continue;
    const auto value = config::number_at(record.metrics, "throughput");
    if (value) sum += *value, ++count;
  }
  return count > 0 ? positive(sum / count) : std::nullopt;
}

double devices_of(const StudyFacts& facts, uint64_t trial) {
  const int64_t devices = facts.trials[trial].devices;
  return devices > 0 ? static_cast<double>(devices)
                     : config::number_at(facts.record.study, "slots_per_trial").value_or(1);
}

// Returns how much more a device trains with the best configuration; nullopt: unknown.
std::optional<double> speedup(const StudyFacts& facts) {
  if (!facts.record.best || !facts.baseline) return std::nullopt;
  const uint64_t own = *facts.baseline, best = facts.record.best->trial;
  // FLOPS_per_gpu is for one device, all other metrics are for all devices of a trial together.
  const double share = devices_of(facts, own) / devices_of(facts, best);
  if (facts.end_to_end && facts.end_to_end->is_script_bound() && facts.end_to_end->ratio) {
    return positive(*facts.end_to_end->ratio * share);
  }
  // If the metric is a rate of training, the gain is the answer, so that the page shows one number.
  if (facts.metric == "FLOPS_per_gpu" && facts.gain) return positive(facts.gain->ratio);
  if (facts.metric == "throughput" && facts.gain) return positive(facts.gain->ratio * share);
  const auto before = mean_throughput(facts, own), after = mean_throughput(facts, best);
  if (before && after) return *after / *before * share;
  return facts.gain ? positive(facts.gain->ratio * share) : std::nullopt;
}

}  // namespace

Time latest_moment(const StudyFacts& facts, bool simulated) {
  if (facts.record.status == StudyStatus::running && !simulated) return std::chrono::system_clock::now();
  Time latest{};
  for (const TrialRecord& record : facts.record.trials) {
    if (const auto time = latest_moment(record)) latest = std::max(latest, *time);
  }
  return latest;
}

Progress progress_of(const StudyFacts& facts, Time now) {
  Progress progress;
  progress.max_trials = static_cast<int>(config::number_at(facts.record.study, "max_trials").value_or(0));
  if (const auto budget = config::number_at(facts.record.study, "time_budget_ms"))
    progress.time_budget_seconds = *budget / 1000;
  int counted = 0;  // ended trials that count against max_trials
  for (const TrialRecord& record : facts.record.trials) {
    const TrialPlace place = facts.trials[record.id].place;
    progress.started += record.started();
    progress.running += place == TrialPlace::running;
    progress.waiting += place == TrialPlace::waiting;
    progress.ended += place == TrialPlace::ended;
    counted += record.started() && place == TrialPlace::ended;
  }
  if (facts.record.trials.empty()) return progress;
  progress.started_at = facts.record.trials.front().submitted_at;
  progress.last_at = format_rfc3339(now);
  const auto begin = parse_rfc3339(progress.started_at);
  if (begin) progress.elapsed_seconds = seconds_between(*begin, now);
  if (facts.record.status != StudyStatus::running) return progress;
  const double busy = busy_seconds(runs_of(facts, now));
  if (counted > 0) progress.seconds_left = busy / counted * std::max(0, progress.max_trials - counted);
  // A resumed study has its whole time budget again.
  const auto resumed = parse_rfc3339(facts.record.study.value("resumed_at", std::string()));
  if (const auto since = resumed ? resumed : begin; progress.time_budget_seconds && since) {
    const double budget_left = std::max(0.0, *progress.time_budget_seconds - seconds_between(*since, now));
    progress.seconds_left = std::min(progress.seconds_left.value_or(budget_left), budget_left);
  }
  return progress;
}

std::vector<BestStep> best_path(const StudyFacts& facts) {
  std::vector<const TrialRecord*> order;
  for (const TrialRecord& record : facts.record.trials) {
    if (facts.trials[record.id].value && !record.duplicate_of) order.push_back(&record);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const TrialRecord* a, const TrialRecord* b) { return a->ended_at < b->ended_at; });
  std::vector<BestStep> path;
  for (const TrialRecord* record : order) {
    const double value = *facts.trials[record->id].value;
    const bool better = path.empty() || (facts.maximise ? value > path.back().value : value < path.back().value);
    if (better) path.push_back({record->id, value});
  }
  return path;
}

Payback payback_of(const StudyFacts& facts, double spent_hours) {
  constexpr double kHour = 3600, kHoursADay = 24;
  Payback payback;
  payback.spent_device_hours = spent_hours;
  for (const TrialRecord& record : facts.record.trials) {
    const std::optional<double>& seconds = facts.trials[record.id].run_seconds;
    if (!record.ended_at.empty()) continue;
    if (seconds) payback.spent_device_hours += *seconds / kHour * static_cast<double>(facts.trials[record.id].devices);
  }
  const std::optional<double> faster = speedup(facts);
  if (!faster) return payback;
  constexpr double kRounding = 1e-9;
  const double saved_share = *faster > 1 + kRounding ? 1 - 1 / *faster : 0;
  payback.saved_device_hours_per_day = kHoursADay * devices_of(facts, *facts.baseline) * saved_share;
  if (saved_share > 0) payback.days = payback.spent_device_hours / *payback.saved_device_hours_per_day;
  return payback;
}

}  // namespace dsat::host
