// A rate or a time is positive, finite and smaller than any machine can reach.
#include "outputs/logged_numbers.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "dsat/base/numbers.h"

namespace dsat::host {

namespace {

constexpr double kMostValue = 1e15;  // a larger value is no measurement

}  // namespace

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
