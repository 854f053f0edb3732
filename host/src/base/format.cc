#include "dsat/host/format.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace dsat::host {
namespace {

std::string digits(double value, int significant) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", significant, value);
  return text;
}

std::string milliseconds(double microseconds) {
  return microseconds < 1e6 ? digits(microseconds / 1e3, 3) + " ms" : digits(microseconds / 1e6, 4) + " s";
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
  return digits(value, 3) + kPrefixes[index];
}

std::string format_metric(const std::string& metric, double value) {
  if (metric == "FLOPS_per_gpu") {
    const std::string count = format_count(value);
    return count + (count.find(' ') == std::string::npos ? " FLOP/s" : "FLOP/s");
  }
  if (metric == "throughput") return digits(value, 4) + " samples/s";
  return milliseconds(value);
}

}  // namespace dsat::host
