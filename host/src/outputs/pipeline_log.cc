// Reads "steps: 7 loss: 2.3 iter time (s): 0.001 samples/sec: 1642.892". The time has only three decimals, so it is
// computed from the rate, which has more digits.
#include "outputs/pipeline_log.h"

#include <map>
#include <string_view>

#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "outputs/log_lines.h"

namespace dsat::host {

namespace {

// Returns samples per second of all devices, by the number of the step.
std::map<int, double> read_rates(const std::vector<std::string>& lines) {
  std::map<int, double> rates;
  for (const std::string& line : lines) {
    constexpr std::string_view kSteps = "steps: ";
    if (line.find(" iter time (s): ") == std::string::npos) continue;
    const std::string_view text = without_prefixes(line);
    const double step = value_after(text, kSteps), rate = value_after(text, "samples/sec: ");
    if (text.substr(0, kSteps.size()) == kSteps && step >= 1 && step <= 1e9 && rate > 0) {
      rates[static_cast<int>(step)] = rate;
    }
  }
  return rates;
}

// Returns seconds per sample.
std::vector<double> fit_times(const std::map<int, double>& rates, ProfileWindow window) {
  std::vector<double> of_window, later;
  for (const auto& [step, rate] : rates) {
    if (is_fit_step(step, window)) of_window.push_back(1 / rate);
    if (step > window.end) later.push_back(1 / rate);
  }
  return of_window.empty() ? later : of_window;
}

}  // namespace

std::optional<TrialReport> read_pipeline_log(const std::vector<std::string>& lines, ProfileWindow window,
                                             const Json& config) {
  const std::map<int, double> rates = read_rates(lines);
  const double samples = config::number_at(config, config::kTrainBatchKey).value_or(0);
  if (rates.empty() || rates.rbegin()->first <= window.end || samples <= 0) return std::nullopt;
  const std::vector<double> times = fit_times(rates, window);
  const double middle = median_of(times);
  TrialReport report;
  report.metrics = {{"throughput", 1 / middle}, {"latency", middle * samples * 1e6}};
  if (times.size() >= kFewestSteps) {
    report.metrics["latency_spread"] = relative_deviation(times, middle);
    report.metrics["latency_steps"] = times.size();
  }
  return report;
}

}  // namespace dsat::host
