// A value gets three or four significant digits and a unit that suits its size.
#include "dsat/host/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "dsat/config/world.h"
#include "dsat/host/metric.h"

namespace dsat::host {
namespace {

// Four significant digits, or all digits before the point for larger values; never an exponent.
std::string four_digits(double value) {
  return value < 1e3 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

// 999.5 ms would be rounded to 1000 ms, so it is shown in seconds.
std::string format_time(double latency_us) {
  return latency_us < 999.5e3 ? fmt::format("{:.3g} ms", latency_us / 1e3) : four_digits(latency_us / 1e6) + " s";
}

// Two significant digits: "1.7", "140".
std::string format_ratio(double ratio) {
  const double exponent = ratio > 0 && std::isfinite(ratio) ? std::floor(std::log10(ratio)) : 0;
  const double unit = std::pow(10.0, exponent - 1);
  return fmt::format("{:.{}f}", std::round(ratio / unit) * unit, std::max(0, 1 - static_cast<int>(exponent)));
}

constexpr double kOpen = 4;  // a wider interval (upper end / lower end) is not worth reading

std::string times_measured(int count) { return count == 1 ? "measured once" : fmt::format("measured {} times", count); }

}  // namespace

std::string format_count(double value) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t index = 0;
  // 999.5 would be rounded to 1000, so it gets the next prefix.
  while (std::abs(value) >= 999.5 && index + 1 < std::size(kPrefixes)) {
    value /= 1e3;
    ++index;
  }
  return fmt::format("{:.3g}{}", value, kPrefixes[index]);
}

std::string format_gain(const Gain& gain, uint64_t best) {
  if (gain.baseline == best) return "none, your own configuration is the best";
  if (!gain.low || !gain.high) {
    const bool once = gain.of_best.measurements == 1 && gain.of_own.measurements == 1;
    return fmt::format(
        "{} your own configuration (trial {}){}; no factor without an interval, since the best was not measured after "
        "its choice",
        gain.ratio > 1 ? "better than" : "no better than", gain.baseline, once ? ", each measured once" : "");
  }
  if (*gain.high > kOpen * *gain.low) {
    constexpr const char* kAdvice = "run the study on a machine that does nothing else, or with more --finals";
    if (*gain.low > 1) {
      return fmt::format("more than {} x your own configuration (trial {}); the noise hides the factor: {}",
                         format_ratio(*gain.low), gain.baseline, kAdvice);
    }
    return fmt::format("{} than your own configuration (trial {}), but not clearly, and the noise hides the factor: {}",
                       gain.ratio > 1 ? "faster" : "slower", gain.baseline, kAdvice);
  }
  // The number of decimals depends on the interval's width.
  const double half = (*gain.high - *gain.low) / 2;
  const int decimals = half >= 0.1 ? 1 : half >= 0.005 ? 2 : 3;
  return fmt::format("{:.{}f} x your own configuration (trial {}), 95 % interval {:.{}f} to {:.{}f}", gain.ratio,
                     decimals, gain.baseline, *gain.low, decimals, *gain.high, decimals);
}

std::string format_gain_sides(const Gain& gain, const std::string& metric) {
  const Gain::Side &best = gain.of_best, &own = gain.of_own;
  if (!gain.low || gain.left_out < 1) return "";
  return fmt::format("made of: the best {} ({} after its choice, {} earlier measurement{} left out), your own {} ({})",
                     format_metric(metric, best.value), times_measured(best.measurements), gain.left_out,
                     gain.left_out == 1 ? "" : "s", format_metric(metric, own.value), times_measured(own.measurements));
}

std::string format_check(const TwinCheck& check) {
  const bool is_unchecked = check.state == TwinCheck::State::unchecked;
  return fmt::format("{}checked{}: {}", is_unchecked ? "not " : "",
                     is_unchecked ? " against your own configuration" : "", check.text);
}

std::string format_devices(const Json& own, const Json& best) {
  const auto before = config::tuned_world(own), after = config::tuned_world(best);
  if (!before || !after || before->size() == after->size()) return "";
  return fmt::format(", on {} device{} in place of {}", after->size(), after->size() == 1 ? "" : "s", before->size());
}

std::string format_end_to_end(const EndToEnd& end_to_end) {
  std::string text = fmt::format("a step takes {}, of which the engine takes {} (does the script wait for its data?)",
                                 format_time(end_to_end.wall_us), format_time(end_to_end.engine_us));
  if (end_to_end.ratio)
    text += fmt::format(": {} x your own configuration by the clock", format_ratio(*end_to_end.ratio));
  return text;
}

std::string format_metric(const std::string& metric, double value) {
  if (metric == "FLOPS_per_gpu") {
    const std::string count = format_count(value);
    return count + (count.find(' ') == std::string::npos ? " FLOP/s" : "FLOP/s");
  }
  if (metric == "throughput" || metric == "wall_throughput") return four_digits(value) + " samples/s";
  if (metric == kPrintedMetric) return four_digits(value);
  return format_time(value);
}

}  // namespace dsat::host
