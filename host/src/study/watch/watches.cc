// The lists have the watches in the order in which their findings count.
#include "study/watch/watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "command/arg_mappings.h"
#include "command/hugging_face.h"
#include "dsat/base/units.h"
#include "dsat/config/json_numbers.h"
#include "dsat/cost/model_states.h"

namespace dsat::host {
namespace {

// The measured peak of the trial, else the states of its model; 0: neither is known.
double least_bytes(const Trial& trial, const Plan& plan, const Json& profile) {
  if (trial.record.peak_bytes) return static_cast<double>(*trial.record.peak_bytes);
  const double params = config::number_at(profile, "num_params").value_or(0);
  if (trial.model_info || params <= 0) return 0;
  const double trainable = config::number_at(profile, "trainable_num_params").value_or(params);
  try {
    const Json config = with_precision(trial.record.config, plan.filled_in_precision());
    return cost::model_state_bytes({params, trainable, 0}, cost::setup_from_config(config, plan.data_parallel_size));
  } catch (const std::exception&) {  // a configuration that the model cannot read is no reason for doubt
    return 0;
  }
}

// Is --device-memory too small? Searchers leave out what cannot fit into it, so a number that is too small hides the
// best.
std::optional<std::string> why_memory_is_doubtful(Watches& all, const Trial& trial, const WatchView& view) {
  const Plan& plan = view.plan;
  const bool completed = trial.record.outcome == Outcome::completed && !trial.record.duplicate_of;
  if (!plan.device_memory_bytes || all.has_doubted_memory || !completed) return std::nullopt;
  const double needed = least_bytes(trial, plan, view.profile);
  const auto given = static_cast<double>(*plan.device_memory_bytes);
  if (needed <= given) return std::nullopt;
  all.has_doubted_memory = true;
  return fmt::format("trials ran that need more than --device-memory {}: is it right? (trial {}: {})",
                     format_size(given), trial.id(), format_size(needed));
}

// A script reports the same figures in every trial, so the first trial shows what the script never reports. If the
// first trial may be an exception, two trials are needed.
constexpr int kWithoutMetric = 2;
constexpr std::array<const char*, 6> kInItsPlace{"throughput", "FLOPS_per_gpu", "latency",
                                                 "forward",    "backward",      "step"};

bool gives(const Json& metrics, const std::string& name) {
  const auto it = metrics.find(name);
  return it != metrics.end() && it->is_number();
}

// May the metric still come? This trial's figure may have been left out, or the host measures it beside the script.
bool may_be_odd(const Trial& trial, const std::string& metric) {
  if (metric == "wall_throughput" || metric == "wall_latency") return true;
  if (!trial.end) return false;
  const std::vector<std::string>& left_out = trial.end->left_out;
  return std::find(left_out.begin(), left_out.end(), metric) != left_out.end();
}

// One or two trials have measured and gave no such metric: the search cannot find a best. nullopt: the metric may still
// come. The model-information trial measures nothing.
std::optional<std::string> why_metric_is_missing(const std::vector<Trial>& trials, const std::string& metric) {
  int without = 0;
  std::vector<const char*> reported;
  for (const Trial& trial : trials) {
    const Json& metrics = trial.record.metrics;
    if (trial.record.outcome != Outcome::completed || trial.record.duplicate_of || trial.model_info) continue;
    if (!metrics.is_object() || gives(metrics, metric)) return std::nullopt;
    without += may_be_odd(trial, metric) ? 1 : kWithoutMetric;
    for (const char* name : kInItsPlace) {
      const bool is_new = std::find(reported.begin(), reported.end(), name) == reported.end();
      if (is_new && gives(metrics, name)) reported.push_back(name);
    }
  }
  if (without < kWithoutMetric || reported.empty()) return std::nullopt;
  std::string list = reported.front();
  for (size_t i = 1; i < reported.size(); ++i) {
    list += fmt::format("{}{}", i + 1 == reported.size() ? " and " : ", ", reported[i]);
  }
  return fmt::format("the trials report {}, but no {}: give --metric {}", list, metric, reported.front());
}

std::optional<std::string> why_nothing_counts(const Watches& all, const Plan& plan) {
  const std::optional<IgnoredKey> ignored = all.ignored.find();
  if (!ignored) return std::nullopt;
  return describe(*ignored, flag_for_key(plan.command, ignored->key, ignored->had));
}

using Watch = std::optional<std::string> (*)(Watches&, const Trial&, const WatchView&);

constexpr Watch kWarnings[] = {
    [](Watches& all, const Trial& trial, const WatchView&) { return all.failures.ceiling(trial); },
    [](Watches& all, const Trial& trial, const WatchView&) { return all.batches.compare(trial); },
    [](Watches& all, const Trial& trial, const WatchView& view) {
      return all.script.compare_times(trial, view.plan.metric);
    },
};

constexpr Watch kReasonsToEnd[] = {
    [](Watches& all, const Trial&, const WatchView& view) { return why_nothing_counts(all, view.plan); },
    [](Watches& all, const Trial& trial, const WatchView& view) { return all.reason_to_end(trial, view); },
    [](Watches&, const Trial& trial, const WatchView& view) {
      const bool completed = trial.record.outcome == Outcome::completed;
      return completed ? why_metric_is_missing(view.trials, view.plan.metric) : std::nullopt;
    },
};

}  // namespace

std::vector<Finding> Watches::after_run(const TrialEnd& end) {
  std::vector<Finding> findings;
  for (const std::string& warning : end.warnings) {
    if (script.is_shown(warning)) findings.push_back({{}, fmt::format("trial {}: {}", end.id, warning)});
  }
  for (std::string& warning : script.add(end)) findings.push_back({{}, std::move(warning)});
  return findings;
}

std::vector<Finding> Watches::after_end(const Trial& trial, const WatchView& view) {
  ignored.add(trial);
  std::vector<Finding> findings;
  if (auto warning = why_memory_is_doubtful(*this, trial, view)) findings.push_back({{}, std::move(*warning)});
  return findings;
}

std::vector<Finding> Watches::after_delivery(const Trial& trial, const WatchView& view) {
  count(trial, view.plan);
  std::vector<Finding> findings;
  for (const std::string& line : culprits.take_news()) {
    findings.push_back({{}, line + "; no further trial has it"});
  }
  for (const Watch watch : kWarnings) {
    if (auto text = watch(*this, trial, view)) findings.push_back({{}, std::move(*text)});
  }
  for (const Watch watch : kReasonsToEnd) {
    if (auto text = watch(*this, trial, view)) findings.push_back({Finding::Effect::no_best, std::move(*text)});
  }
  return findings;
}

void Watches::count(const Trial& trial, const Plan& plan) {
  failures.add(trial);
  culprits.add(trial, plan.space);
}

void Watches::begin_search() {
  failures.begin_row();
  culprits.forget_failures();
}

// Failures in a row that share a suspect end nothing: it is refused, and others may work.
std::optional<std::string> Watches::reason_to_end(const Trial& last, const WatchView& view) const {
  const bool profile_goes_on =
      last.phase == Phase::profiler && std::any_of(view.trials.begin(), view.trials.end(), [](const Trial& trial) {
        return trial.phase == Phase::profiler && trial.state < TrialState::ended;
      });
  const bool is_suspected = culprits.suspects_of(last) && !culprits.blame_script(last, view.plan.space);
  return failures.reason_to_end(last, is_suspected, profile_goes_on);
}

int trials_since_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise, uint64_t first) {
  const Json* best = nullptr;
  int since = 0;
  for (const Trial& trial : trials) {
    const TrialRecord& record = trial.record;
    if (trial.state != TrialState::delivered || trial.model_info || !trial.can_answer()) continue;
    const auto value = record.metrics.is_object() ? record.metrics.find(metric) : record.metrics.end();
    const bool measured = record.outcome == Outcome::completed && value != record.metrics.end() && value->is_number();
    if (measured && (best == nullptr || (maximise ? *value > *best : *value < *best))) {
      best = &*value;
      since = 0;
    } else if (best != nullptr && trial.phase == Phase::searcher && trial.id() >= first) {
      ++since;
    }
  }
  return since;
}

}  // namespace dsat::host
