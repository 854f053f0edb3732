// Numbers the printed steps, chooses the comparable ones of the profile window, and replaces the step of the metric
// file by the median step.
#include "outputs/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "dsat/base/numbers.h"
#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "outputs/read_metrics.h"

namespace dsat::host {

namespace {

constexpr double kMostValue = 1e15;  // a larger value is no measurement

constexpr int kColdSteps = 2;  // the first steps allocate buffers and states
constexpr double kSumTolerance = 0.02;
constexpr double kMostApart = 100;  // if the steps of file and log differ more, they measure different things

bool contains_text(std::string_view line, std::string_view part) { return line.find(part) != std::string_view::npos; }

// Returns the logger's time, "[2026-11-22 13:33:03,382]", in microseconds; 0: the line has none.
double time_of_us(const std::string& line) {
  constexpr std::string_view kForm = "[2026-11-22 13:33:03,382]";
  for (size_t at = line.find("[20"); at != std::string::npos; at = line.find("[20", at + 1)) {
    if (at + kForm.size() > line.size()) return 0;
    const std::string text = line.substr(at + 1, kForm.size() - 2);
    const auto time =
        parse_rfc3339(fmt::format("{}T{}.{}000Z", text.substr(0, 10), text.substr(11, 8), text.substr(20)));
    if (time) return std::chrono::duration<double, std::micro>(time->time_since_epoch()).count();
  }
  return 0;
}

void keep_time(const std::string& line, int step, StepLog& log) {
  if (const double at_us = time_of_us(line); at_us > 0) log.steps[step].printed_at_us = at_us;
}

bool is_of_another_rank(std::string_view line) {
  return contains_text(line, "[Rank ") && !contains_text(line, "[Rank 0]");
}

// Finds the step of each line. A step's number is printed first; its line with timers comes last and has no number.
class StepNumbers {
 public:
  explicit StepNumbers(bool is_cut) : is_known_(!is_cut) {}
  void set(int step) {
    if (is_known_ && step == current_) return;
    current_ = step;
    is_known_ = true;
    is_done_ = false;
  }
  std::optional<int> finish() {
    if (!is_known_) return std::nullopt;
    if (is_done_) ++current_;
    is_done_ = true;
    return current_;
  }

 private:
  int current_ = 0;
  bool is_known_;
  bool is_done_ = true;  // the line with timers was read
};

// Marks the steps that updated nothing: the printed count of them, "step=4, skipped=3", has risen.
class SkippedSteps {
 public:
  explicit SkippedSteps(bool is_cut) : is_known_(!is_cut) {}
  void read(const std::string& line, int step, StepLog& log) {
    const double count = value_after(line, ", skipped=");
    if (is_known_ && count > count_) {
      // If not every step is printed, any step since the last printed one may be the skipped one. A step's number can
      // fall: a second engine, or a script that went back to a checkpoint.
      const auto end = log.steps.upper_bound(step);
      for (auto it = log.steps.upper_bound(std::min(last_, step)); it != end; ++it) it->second.updates_nothing = true;
      log.steps[step].updates_nothing = true;
    }
    count_ = count;
    last_ = step;
    is_known_ = true;
  }

 private:
  double count_ = 0;
  int last_ = 0;  // the last printed step
  bool is_known_;
};

std::vector<LoggedStep> fit_steps(const StepLog& log, ProfileWindow window) {
  std::vector<LoggedStep> fit;
  for (const auto& [number, step] : log.steps) {
    if (is_fit_step(number, window) && !step.updates_nothing) fit.push_back(step);
  }
  return fit;
}

// Latency is that of a whole step; forward, backward and step are those of one micro step.
struct StepTimes {
  double latency = 0, forward = 0, backward = 0, step = 0;
};

struct Medians {
  StepTimes times;
  double spread = 0;
  size_t count = 0;
};

// Sorts by latency; for an even number, returns the mean of the two steps in the middle. The parts come from the same
// steps as the whole, so they fit it.
StepTimes middle_of(std::vector<StepTimes> steps) {
  std::sort(steps.begin(), steps.end(), [](const StepTimes& a, const StepTimes& b) { return a.latency < b.latency; });
  const StepTimes &upper = steps[steps.size() / 2], &lower = steps[(steps.size() - 1) / 2];
  return {(upper.latency + lower.latency) / 2, (upper.forward + lower.forward) / 2,
          (upper.backward + lower.backward) / 2, (upper.step + lower.step) / 2};
}

// Uses the lines with timers. The step of the metric file has no such line, so the file's numbers are one more sample,
// unless that step is not comparable.
std::optional<Medians> by_timers(const std::vector<LoggedStep>& logged, const std::optional<StepTimes>& file,
                                 double accumulation) {
  std::vector<StepTimes> steps;
  std::vector<double> latencies;
  if (file) {
    steps.push_back(*file);
    latencies.push_back(file->latency);
  }
  for (const LoggedStep& step : logged) {
    if (step.forward_us <= 0) continue;
    steps.push_back({step.timers_us(), step.forward_us / accumulation, step.backward_us / accumulation,
                     step.step_us / accumulation});
    latencies.push_back(step.timers_us());
  }
  if (steps.size() < (file ? kFewestSteps : 1)) return std::nullopt;
  const StepTimes middle = middle_of(steps);
  return Medians{middle, relative_deviation(latencies, middle.latency), steps.size()};
}

// Uses the lines with throughput. They include the script's time between the engine's calls, so the file's step is
// scaled by the ratio of the printed median to the printed last step.
std::optional<Medians> by_throughput(const std::vector<LoggedStep>& steps, const LoggedStep& last,
                                     const StepTimes& file) {
  std::vector<double> seconds_a_sample;
  for (const LoggedStep& logged : steps) {
    if (logged.samples_per_second > 0) seconds_a_sample.push_back(1 / logged.samples_per_second);
  }
  if (seconds_a_sample.size() < kFewestSteps || last.samples_per_second <= 0) return std::nullopt;
  const double middle = median_of(seconds_a_sample), ratio = middle * last.samples_per_second;
  return Medians{{file.latency * ratio, file.forward * ratio, file.backward * ratio, file.step * ratio},
                 relative_deviation(seconds_a_sample, middle),
                 seconds_a_sample.size()};
}

// Replaces the file's step by the median step. Returns a warning, or "".
std::string take_middle_step(const StepLog& log, ProfileWindow window, double accumulation, const StepTimes& file,
                             Json& metrics) {
  const std::vector<LoggedStep> steps = fit_steps(log, window);
  const auto last = log.steps.find(window.end + 1);
  const bool is_file_fit = last == log.steps.end() || !last->second.updates_nothing;
  std::optional<Medians> medians = by_timers(steps, is_file_fit ? std::optional(file) : std::nullopt, accumulation);
  if (!medians && last != log.steps.end()) medians = by_throughput(steps, last->second, file);
  if (!medians) {
    if (is_file_fit) return "";
    return "the loss scale overflowed in the measured step: its time lacks the optimizer's update, and the peak may "
           "lack its states (lower fp16.initial_scale_power, or raise --end-profile-step)";
  }
  const StepTimes& times = medians->times;
  const double ratio = times.latency / file.latency;
  if (ratio > kMostApart || ratio * kMostApart < 1) {
    return fmt::format(
        "the median step in the log took {:.3g} us, the step in the metric file {:.3g}: the log is ignored",
        times.latency, file.latency);
  }
  metrics["forward"] = times.forward;
  metrics["backward"] = times.backward;
  metrics["step"] = times.step;
  metrics["latency"] = times.latency;
  for (const char* rate : {"throughput", "FLOPS_per_gpu"}) {
    if (metrics.contains(rate)) metrics[rate] = metrics[rate].get<double>() / ratio;
  }
  if (medians->count > 1) metrics["latency_spread"] = medians->spread;
  metrics["latency_steps"] = medians->count;
  return "";
}

}  // namespace

bool is_fit_step(int number, ProfileWindow window) {
  const bool in_window = number >= window.start && number <= window.end + 1;
  return in_window && number > kColdSteps && number != window.start + 1;
}

StepLog read_step_log(const std::vector<std::string>& lines, bool is_cut) {
  StepLog log;
  StepNumbers numbers(is_cut);
  SkippedSteps skipped(is_cut);
  int unrated = 0;  // the step that was printed last and has no rate yet; 0: none
  constexpr double kGiB = 1024.0 * 1024 * 1024, kMostGiB = 1e9;
  for (const std::string& line : lines) {
    if (is_of_another_rank(line)) continue;
    if (contains_text(line, "CurrSamplesPerSec=")) {
      // To 0.7.7 the line counts micro steps and, to 0.7.6, stands for each of them. The one at the boundary follows
      // the line of its step.
      const bool is_numbered = contains_text(line, "global_step=");
      const int step =
          is_numbered ? static_cast<int>(std::min(value_after(line, "global_step="), 1e9)) : std::exchange(unrated, 0);
      if (step <= 0) continue;
      numbers.set(step);
      keep_time(line, step, log);
      log.steps[step].samples_per_second = value_after(line, "CurrSamplesPerSec=");
      const auto peak = static_cast<uint64_t>(std::min(value_after(line, "MaxMemAllocated="), kMostGiB) * kGiB);
      if (peak > 0) log.peak_bytes = std::max(log.peak_bytes.value_or(0), peak);
    } else if (contains_text(line, ", skipped=")) {
      const int step = static_cast<int>(std::min(value_after(line, "step="), 1e9));
      if (step <= 0) continue;
      numbers.set(step);
      keep_time(line, step, log);
      skipped.read(line, step, log);
      unrated = step;
    } else if (contains_text(line, "time (ms) |")) {
      const bool old = contains_text(line, " forward: ");
      if (!old && !contains_text(line, " fwd: ")) continue;  // this line is about a micro step or the optimizer
      const std::optional<int> step = numbers.finish();
      if (!step) continue;
      keep_time(line, *step, log);
      LoggedStep& logged = log.steps[*step];
      logged.forward_us = 1e3 * value_after(line, old ? " forward: " : " fwd: ");
      logged.backward_us = 1e3 * value_after(line, old ? " backward: " : " bwd: ");
      logged.step_us = 1e3 * value_after(line, " step: ");
    }
  }
  return log;
}

std::optional<double> script_time_us(const StepLog& log, ProfileWindow window, double last_step_us) {
  double sum = 0;
  size_t count = 0;
  for (const auto& [number, step] : log.steps) {
    if (number < window.start || number > window.end + 1 || number <= kColdSteps) continue;
    const auto before = log.steps.find(number - 1);
    const double engine_us = number == window.end + 1 ? last_step_us : step.timers_us();
    if (before == log.steps.end() || before->second.printed_at_us <= 0 || step.printed_at_us <= 0) continue;
    if (engine_us <= 0) continue;
    sum += step.printed_at_us - before->second.printed_at_us - engine_us;
    ++count;
  }
  if (count < kFewestSteps) return std::nullopt;
  return std::max(0.0, sum / static_cast<double>(count));
}

std::string use_logged_steps(const StepLog& log, ProfileWindow window, const Json& config, Json& metrics) {
  const double accumulation = std::max(1.0, config::number_at(config, config::kAccumulationKey).value_or(0));
  const StepTimes file{
      config::number_at(metrics, "latency").value_or(0), config::number_at(metrics, "forward").value_or(0),
      config::number_at(metrics, "backward").value_or(0), config::number_at(metrics, "step").value_or(0)};
  const double sum = accumulation * (file.forward + file.backward + file.step);
  if (file.latency <= 0 || std::abs(sum - file.latency) > kSumTolerance * file.latency) return "";
  std::string warning = take_middle_step(log, window, accumulation, file, metrics);
  if (!warning.empty()) return warning;
  const std::optional<double> script_us = script_time_us(log, window, file.latency);
  if (script_us && !metrics.contains("wall_latency")) {
    metrics["wall_latency"] = metrics["latency"].get<double>() + *script_us;
  }
  return "";
}

double value_after(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == std::string_view::npos) return 0;
  line.remove_prefix(at + name.size());
  const std::optional<double> value = parse_number(line.substr(0, line.find_first_not_of("0123456789.eE+-naif")));
  return value && std::isfinite(*value) && *value > 0 && *value <= kMostValue ? *value : 0;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double relative_deviation(const std::vector<double>& values, double middle) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1)) / middle;
}

}  // namespace dsat::host
