// Columns have a fixed width, so that lines can be compared. The value is followed by its distance from the best.
// Colours only repeat what the words say.
#include "terminal/trial_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/base/secrets.h"
#include "dsat/config/json_numbers.h"
#include "terminal/format.h"

namespace dsat::cli {
namespace {

using host::Outcome;

std::string words_of(Outcome outcome) {
  std::string words = to_string(outcome);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

Colour colour_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::completed:
      return Colour::plain;
    case Outcome::out_of_memory:
      return Colour::caution;
    case Outcome::stopped:
    case Outcome::invalid_config:
      return Colour::dim;
    case Outcome::failed:
    case Outcome::timed_out:
    case Outcome::lost:
    case Outcome::diverged:
      break;
  }
  return Colour::bad;
}

void add_result(StyledLine& line, const host::TrialRecord& trial, std::optional<double> best_before,
                const TrialLineSettings& settings) {
  const std::optional<double> value = value_of(trial, settings.metric);
  const Outcome outcome = trial.outcome.value_or(Outcome::stopped);
  if (!value) return line.push_back({"  " + (trial.outcome ? words_of(outcome) : "open"), colour_of(outcome)});
  line.push_back({fmt::format("  {:>15}", format_metric(settings.metric, *value))});
  if (trial.duplicate_of) return;
  const bool best = !best_before || (settings.maximise ? *value > *best_before : *value < *best_before);
  if (best_before) {
    line.push_back({fmt::format("  {:>8}", percent_better(*value, *best_before, settings.maximise)),
                    best ? Colour::good : Colour::dim});
  }
  if (best) line.push_back({"  best", Colour::good});
}

std::string details(const host::TrialRecord& trial) {
  std::string text;
  if (trial.peak_bytes) text += fmt::format(", peak {}", bytes_or_dash(trial.peak_bytes));
  if (!trial.reason.empty()) text += fmt::format(", {}", one_line(mask_secrets(trial.reason)));
  if (!trial.note.empty()) text += fmt::format(" ({})", one_line(mask_secrets(trial.note)));
  return text;
}

}  // namespace

std::optional<double> value_of(const host::TrialRecord& trial, const std::string& metric) {
  return trial.outcome == Outcome::completed ? config::number_at(trial.metrics, metric) : std::nullopt;
}

std::string percent_better(double value, double reference, bool maximise) {
  const double ratio = maximise ? value / reference : reference / value;
  if (!std::isfinite(ratio)) return "-";
  const double percent = (ratio - 1) * 100;
  // A factor is easier to read than a percentage of four digits.
  return percent < 1000 ? fmt::format("{:+.1f} %", percent) : fmt::format("x {:.3g}", ratio);
}

std::string purpose_of(const host::TrialRecord& trial) {
  switch (trial.kind) {
    case host::TrialKind::profile:
      return "profile";
    case host::TrialKind::baseline:
      return "your own";
    case host::TrialKind::repeat:
      return "again";
    case host::TrialKind::duplicate:
      return trial.duplicate_of ? fmt::format("as trial {}", *trial.duplicate_of) : "duplicate";
    case host::TrialKind::search:
      break;
  }
  return "";
}

StyledLine trial_line(const host::TrialRecord& trial, std::optional<double> best_before,
                      const TrialLineSettings& settings) {
  const size_t digits = fmt::formatted_size("{}", std::max(9, settings.max_trials - 1));
  StyledLine line{{fmt::format("trial {:>{}}  stage {}  micro batch {:>4}", trial.id, digits,
                               or_dash(zero_stage_of(trial.config)), or_dash(micro_batch_of(trial.config)))}};
  add_result(line, trial, best_before, settings);
  if (const std::string purpose = purpose_of(trial); !purpose.empty()) line.push_back({"  " + purpose, Colour::dim});
  if (settings.verbose) line.push_back({details(trial), Colour::dim});
  return line;
}

}  // namespace dsat::cli
