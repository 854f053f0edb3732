// Reads the report's summary, line by line, into named numbers in basic units. The metrics are computed from these.
#include "outputs/flops_profiler_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "outputs/plausible.h"

namespace dsat::host {

namespace {

// The values of the summary by name, in basic units: seconds, FLOP/s, counts.
using Summary = std::map<std::string, double, std::less<>>;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 3> kTimes{{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}};
constexpr std::array<Unit, 7> kPrefixes{
    {{"T", 1e12}, {"G", 1e9}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}, {"k", 1e3}, {"", 1}}};

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (text.size() < suffix.size() || text.substr(text.size() - suffix.size()) != suffix) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::optional<double> factor_of(std::string_view unit) {
  for (const Unit& time : kTimes) {
    if (unit == time.name) return time.factor;
  }
  if (!drop_suffix(unit, "FLOPS")) drop_suffix(unit, "MACs");
  for (const Unit& prefix : kPrefixes) {
    if (unit == prefix.name) return prefix.factor;
  }
  return std::nullopt;
}

// Parses "81.9 TFLOPS", "34.09 us", "433.07"; nullopt: the text is no such value.
std::optional<double> value_of(std::string_view text) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  const auto factor = factor_of(trim(text.substr(static_cast<size_t>(stop - text.data()))));
  return factor && std::isfinite(number * *factor) ? std::optional<double>(number * *factor) : std::nullopt;
}

// Removes the formula after " = ", and writes "GPU" for "gpu" and "device".
std::string name_of(std::string_view name) {
  std::string result(trim(name.substr(0, name.find(" = "))));
  for (const std::string_view old : {"per gpu", "per device"}) {
    const size_t at = result.find(old);
    if (at != std::string::npos) result.replace(at, old.size(), "per GPU");
  }
  return result;
}

// Reads the lines between the heading and the profile by module. Throws Error: the report ends before that.
Summary read_summary(std::string_view text, const std::string& file_name) {
  Summary summary;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find("Aggregated Profile") != std::string_view::npos) return summary;
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (const auto value = value_of(trim(line.substr(colon + 1)))) {
      summary.emplace(name_of(line.substr(0, colon)), *value);
    }
  }
  throw Error(file_name + " is an incomplete report of DeepSpeed's flops profiler: it ends within the summary");
}

std::optional<double> positive(const Summary& summary, std::string_view name) {
  const auto it = summary.find(name);
  if (it == summary.end() || it->second <= 0) return std::nullopt;
  return it->second;
}

std::optional<int64_t> count_in(const Summary& summary, std::string_view name) {
  const auto value = positive(summary, name);
  return value && *value <= kMostCount ? std::optional<int64_t>(*value) : std::nullopt;
}

void warn_of_other_batch(const Summary& summary, const Json& config, std::vector<std::string>& warnings) {
  const auto reported = positive(summary, "batch size per GPU");
  const double wanted = config::number_at(config, config::kMicroBatchKey).value_or(0);
  if (!reported || *reported == wanted) return;
  warnings.push_back(
      fmt::format("the flops profiler saw a batch size of {} per device, the configuration has {}: the "
                  "script takes its batch size from somewhere else",
                  Json(*reported).dump(), Json(wanted).dump()));
}

}  // namespace

bool asks_for_flops_report(const Json& config) {
  const Json* enabled = config::find(config, "flops_profiler.enabled");
  const Json* file = config::find(config, "flops_profiler.output_file");
  return enabled != nullptr && *enabled == true && file != nullptr && file->is_string() && *file != "";
}

TrialReport read_flops_report(std::string_view text, const std::string& file_name, const Json& config) {
  const Summary summary = read_summary(text, file_name);
  const auto forward = positive(summary, "fwd latency"), backward = positive(summary, "bwd latency");
  if (!forward) throw Error(file_name + " has no fwd latency: it is no report of DeepSpeed's flops profiler");
  if (!backward) {
    throw Error(file_name +
                " has only the forward pass: set wall_clock_breakdown to true in the DeepSpeed configuration");
  }
  const double step = positive(summary, "step latency").value_or(0);
  const double iteration = positive(summary, "iter latency").value_or(*forward + *backward + step);
  const double latency_us = iteration * 1e6 * config::number_at(config, config::kAccumulationKey).value_or(1);

  TrialReport report;
  report.metrics = {{"forward", *forward * 1e6}, {"backward", *backward * 1e6}, {"step", step * 1e6}};
  report.metrics["latency"] = latency_us;
  report.metrics["throughput"] = config::number_at(config, config::kTrainBatchKey).value_or(0) * 1e6 / latency_us;
  const auto flops_per_gpu = positive(summary, "FLOPS per GPU"), forward_flops = positive(summary, "fwd flops per GPU");
  if (flops_per_gpu) {
    report.metrics["FLOPS_per_gpu"] = *flops_per_gpu;
  } else if (forward_flops) {
    report.metrics["FLOPS_per_gpu"] =
        3 * *forward_flops / iteration;  // the backward pass is counted as two forward passes
  }
  if (const auto size = count_in(summary, "world size")) report.world_size = *size;
  keep_plausible(file_name, report);
  warn_of_other_batch(summary, config, report.warnings);
  return report;
}

TrialReport read_flops_model_info(std::string_view text, const std::string& file_name) {
  const Summary summary = read_summary(text, file_name);
  // With model parallelism a device holds a part of the model, so the figure for the whole model is preferred.
  auto params = count_in(summary, "params of model");
  if (!params) params = count_in(summary, "params per GPU");
  if (!params) throw Error(file_name + " has no params per GPU: it is no report of DeepSpeed's flops profiler");
  TrialReport report;
  report.metrics = {{"num_params", *params}, {"trainable_num_params", *params}};
  if (const auto size = count_in(summary, "world size")) {
    report.world_size = *size;
    report.metrics["world_size"] = *size;
  }
  return report;
}

}  // namespace dsat::host
