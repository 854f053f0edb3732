// Writes measured values for people.
// A value gets three or four significant digits and the unit that suits its size.
#include "dsat/host/format.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace dsat::host {
namespace {

std::string format_time(double latency_us) {
  return latency_us < 1e6 ? fmt::format("{:.3g} ms", latency_us / 1e3) : fmt::format("{:.4g} s", latency_us / 1e6);
}

}  // namespace

std::string format_count(double value) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t index = 0;
  // 999.5 of one prefix would round to 1000: it belongs to the next.
  while (std::abs(value) >= 999.5 && index + 1 < std::size(kPrefixes)) {
    value /= 1e3;
    ++index;
  }
  return fmt::format("{:.3g}{}", value, kPrefixes[index]);
}

std::string format_metric(const std::string& metric, double value) {
  if (metric == "FLOPS_per_gpu") {
    const std::string count = format_count(value);
    return count + (count.find(' ') == std::string::npos ? " FLOP/s" : "FLOP/s");
  }
  if (metric == "throughput") return fmt::format("{:.4g} samples/s", value);
  return format_time(value);
}

}  // namespace dsat::host
