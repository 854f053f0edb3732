// Counts the trials that end and keeps one line of the terminal up to date; other lines push it down.
// How long the rest takes follows from the mean time of a trial so far.
#include "terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/base/units.h"
#include "terminal/format.h"

namespace dsat::cli {
namespace {

// A number, or the value of an interval {value, low, high}; nullopt: null or absent.
std::optional<double> number_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  if (it->is_number()) return it->get<double>();
  return it->is_object() ? number_at(*it, "value") : std::nullopt;
}

std::string interval_text(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object()) return "";
  const auto low = number_at(*it, "low"), high = number_at(*it, "high");
  if (!low || !high) return "";
  return fmt::format(" (90 % interval {} to {})", format_size(*low), format_size(*high));
}

std::string bytes_at(const Json& object, const char* key) {
  const auto bytes = number_at(object, key);
  return bytes ? format_size(*bytes) : "unknown";
}

// Without a device memory the ceiling is only what has fitted so far.
std::string ceiling_text(const Json& stage, bool memory_known) {
  const auto ceiling = number_at(stage, "max_micro_batch");
  if (!ceiling || (!memory_known && *ceiling < 1)) return "maximum micro batch unknown";
  // Where two micro batches need the same memory there is no line that meets the device's: a number would be made up.
  constexpr double kTooFar = 64;
  const Json& interval = stage.at("max_micro_batch");
  const double low = interval.is_object() ? std::max(1.0, number_at(interval, "low").value_or(*ceiling)) : *ceiling;
  if (*ceiling > kTooFar * low) return fmt::format("maximum micro batch unknown, at least {:.0f}", low);
  return fmt::format(memory_known ? "approximate maximum micro batch {:.0f}" : "maximum micro batch at least {:.0f}",
                     *ceiling);
}

std::string stage_line(const Json& stage, bool memory_known) {
  return fmt::format("stage {:.0f}: model states {}, {}", number_at(stage, "stage").value_or(0),
                     bytes_at(stage, "model_state_bytes"), ceiling_text(stage, memory_known));
}

}  // namespace

std::vector<std::string> profile_lines(const Json& profile) {
  std::vector<std::string> lines;
  if (!profile.is_object()) return lines;
  const auto params = number_at(profile, "num_params"), trainable = number_at(profile, "trainable_num_params");
  if (params) {
    std::string line = fmt::format("model: {} parameters", format_count(*params));
    if (trainable && *trainable != *params) line += fmt::format(", {} of them trainable", format_count(*trainable));
    lines.push_back(line);
  }
  lines.push_back(fmt::format("device memory: {}", bytes_at(profile, "device_memory_bytes")));
  lines.push_back(fmt::format("activation memory per example: {}{}", bytes_at(profile, "activation_bytes_per_sample"),
                              interval_text(profile, "activation_bytes_per_sample")));
  const auto stages = profile.find("stages");
  if (stages != profile.end() && stages->is_array()) {
    const bool memory_known = number_at(profile, "device_memory_bytes").has_value();
    for (const Json& stage : *stages) lines.push_back(stage_line(stage, memory_known));
  }
  return lines;
}

Progress::Progress(Console& console, ProgressSettings settings)
    : console_(console), settings_(std::move(settings)), terminal_(!settings_.quiet && console.text().terminal()) {}

void Progress::count_earlier(const host::StudyRecord& record) {
  earlier_ = record.started();
  if (record.best) on_best(*record.best);
}

void Progress::clear() {
  if (drawn_) console_.text().write("\r\033[K");
  drawn_ = false;
}

void Progress::print(const std::string& line) {
  clear();
  console_.line(one_line(line));
}

void Progress::redraw() {
  if (!terminal_) return;
  std::string line = one_line(status_line());
  const auto columns = static_cast<size_t>(std::max(1, console_.text().columns() - 1));
  if (line.size() > columns) line.resize(columns);
  console_.text().write(fmt::format("\r\033[K{}", line));
  drawn_ = true;
}

void Progress::on_log(Severity severity, std::string_view message) {
  if (severity == Severity::error) return errors_.push_back(one_line(message));
  if (severity == Severity::debug || (settings_.quiet && severity == Severity::info)) return;
  print(fmt::format("{}{}", severity == Severity::warning ? "warning: " : "", message));
  redraw();
}

void Progress::on_trial_started(const host::TrialRecord& trial) {
  running_.insert(trial.id);
  redraw();
}

void Progress::on_trial_ended(const host::TrialRecord& trial) {
  if (trial.started()) ++ended_;
  running_.erase(trial.id);
  if (!terminal_ && !settings_.quiet) print(trial_line(trial, settings_.metric));
  redraw();
}

void Progress::on_profile(const Json& profile) {
  if (settings_.quiet) return;
  for (const std::string& line : profile_lines(profile)) print(line);
  redraw();
}

void Progress::on_best(const host::BestRecord& best) {
  best_ = fmt::format("{}: stage {}, micro batch {}, trial {}", format_metric(settings_.metric, best.metric),
                      or_dash(zero_stage_of(best.config)), or_dash(micro_batch_of(best.config)), best.trial);
  redraw();
}

std::optional<std::chrono::milliseconds> Progress::time_left() const {
  using std::chrono::milliseconds;
  const auto elapsed = std::chrono::duration_cast<milliseconds>(Clock::now() - begin_);
  std::optional<milliseconds> left;
  if (ended_ > 0 && settings_.max_trials > 0) {
    left = elapsed / ended_ * std::max(0, settings_.max_trials - earlier_ - ended_);
  }
  if (settings_.time_budget) {
    const milliseconds rest = std::max(milliseconds(0), *settings_.time_budget - elapsed);
    left = left ? std::min(*left, rest) : rest;
  }
  return left;
}

std::string Progress::status_line() const {
  std::string line = fmt::format("trials {}", earlier_ + ended_);
  if (settings_.max_trials > 0) line += fmt::format("/{}", settings_.max_trials);
  line += fmt::format(", {} running", running_.size());
  if (const auto left = time_left()) line += fmt::format(", about {} left", format_duration(*left));
  // Last: a narrow terminal cuts it off.
  if (!best_.empty()) line += fmt::format(", best {}", best_);
  return line;
}

std::string Progress::trial_line(const host::TrialRecord& trial, const std::string& metric) {
  std::string line = fmt::format("trial {} {} stage {} micro batch {}: {}", trial.id, to_string(trial.kind),
                                 or_dash(zero_stage_of(trial.config)), or_dash(micro_batch_of(trial.config)),
                                 trial.outcome ? to_string(*trial.outcome) : "running");
  const std::string value = format_metric(metric, trial.metrics);
  if (value != "-") line += fmt::format(", {}", value);
  if (trial.peak_bytes) line += fmt::format(", peak {}", bytes_or_dash(trial.peak_bytes));
  if (trial.duplicate_of) line += fmt::format(", as trial {}", *trial.duplicate_of);
  if (!trial.reason.empty()) line += fmt::format(", {}", trial.reason);
  if (!trial.note.empty()) line += fmt::format(" ({})", trial.note);
  return line;
}

}  // namespace dsat::cli
