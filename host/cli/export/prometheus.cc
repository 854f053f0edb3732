// Gauges in Prometheus' text format, each with its help and type. The label `dir` tells studies apart, because studies
// of the same script share a name. Trials are only counted, because a series for each trial would never end.
#include <fmt/format.h>

#include <cmath>

#include "export/flat_study.h"
#include "export/formats.h"
#include "terminal/console.h"
#include "terminal/times.h"

namespace dsat::cli {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

class Text {
 public:
  explicit Text(const host::StudyFacts& facts)
      : study_(fmt::format("study=\"{}\",dir=\"{}\"", escaped(name_of(facts)),
                           escaped(one_line(folder_of(facts).string())))) {}
  // Begins a metric; its samples follow.
  void metric(const std::string& name, const std::string& help) {
    name_ = "dsat_" + name;
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name_, help);
  }
  void sample(double value, const Labels& labels = {}) {
    text_ += fmt::format("{}{{{}", name_, study_);
    for (const auto& [key, label] : labels) text_ += fmt::format(",{}=\"{}\"", key, escaped(label));
    text_ += fmt::format("}} {}\n", value);
  }
  void only(const std::string& name, const std::string& help, std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return;
    metric(name, help);
    sample(*value);
  }
  std::string take() { return std::move(text_); }

 private:
  const std::string study_;  // the labels of the study
  std::string name_, text_;
};

std::optional<double> optional(const std::optional<int64_t>& value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

void add_status(Text& text, const host::StudyFacts& facts) {
  text.metric("study_status", "1 for the status that the study has, 0 for the others.");
  for (const auto status : {host::StudyStatus::running, host::StudyStatus::completed, host::StudyStatus::no_best,
                            host::StudyStatus::interrupted, host::StudyStatus::failed}) {
    text.sample(facts.record.status == status ? 1 : 0, {{"status", to_string(status)}});
  }
}

void add_trials(Text& text, const host::StudyFacts& facts) {
  const auto counts = facts.record.counts();
  text.metric("trials", "Trials that have ended, by outcome.");
  using host::Outcome;
  for (const Outcome outcome : {Outcome::completed, Outcome::out_of_memory, Outcome::failed, Outcome::timed_out,
                                Outcome::invalid_config, Outcome::stopped, Outcome::lost, Outcome::diverged}) {
    const auto count = counts.find(outcome);
    text.sample(count == counts.end() ? 0 : count->second, {{"outcome", to_string(outcome)}});
  }
  text.only("trials_started", "Trials that count against the limit.", facts.progress.started);
  text.only("trials_running", "Trials that run.", facts.progress.running);
  text.only("trials_max", "The limit of trials.", facts.progress.max_trials);
}

void add_best(Text& text, const host::StudyFacts& facts) {
  if (!facts.record.best) return;
  const host::BestRecord& best = *facts.record.best;
  text.metric("best_value", "The study's metric of the best configuration: microseconds, samples/s or FLOP/s.");
  text.sample(best.metric, {{"metric", facts.metric}});
  text.only("best_trial", "The trial of the best configuration.", static_cast<double>(best.trial));
  if (!facts.gain) return;
  text.only("gain_ratio", "The best against the user's own configuration; above 1 is better.", facts.gain->ratio);
  text.only("gain_ratio_low", "The lower end of the gain's 95 % interval.", facts.gain->low);
  text.only("gain_ratio_high", "The upper end of the gain's 95 % interval.", facts.gain->high);
}

template <class Value>
void add_by_stage(Text& text, const host::StudyFacts& facts, const char* name, const char* help, Value value) {
  bool begun = false;
  for (const host::StageFacts& stage : facts.stages) {
    const std::optional<double> number = value(stage);
    if (!number || !std::isfinite(*number)) continue;
    if (!begun) text.metric(name, help);
    begun = true;
    text.sample(*number, {{"stage", fmt::to_string(stage.stage)}});
  }
}

}  // namespace

std::string prometheus_of(const host::StudyFacts& facts) {
  Text text(facts);
  add_status(text, facts);
  add_trials(text, facts);
  add_best(text, facts);
  add_by_stage(text, facts, "stage_best_value", "The study's metric of a ZeRO stage's best configuration.",
               [](const host::StageFacts& stage) { return stage.best_value; });
  add_by_stage(text, facts, "stage_largest_micro_batch", "The largest micro batch that completed at a ZeRO stage.",
               [](const host::StageFacts& stage) { return optional(stage.largest_that_fitted); });
  text.only("device_memory_bytes", "Memory of a device.", optional(facts.device_memory_bytes));
  text.only("spent_device_seconds", "Device time that the search has taken.", facts.payback.spent_device_hours * 3600);
  text.only("elapsed_seconds", "From the first request to the latest moment in the journal.",
            facts.progress.elapsed_seconds);
  text.only("remaining_seconds", "Until the limit of trials, by the pace until now.", facts.progress.seconds_left);
  if (const int64_t last = microseconds_of(facts.progress.last_at); last > 0) {
    text.only("last_event_timestamp_seconds", "The latest moment in the journal.", static_cast<double>(last) / 1e6);
  }
  return text.take();
}

}  // namespace dsat::cli
