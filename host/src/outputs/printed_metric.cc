// Counts lines, since scripts number their steps in many ways.
#include "outputs/printed_metric.h"

#include <fmt/format.h>

#include <algorithm>

namespace dsat::host {

PrintedMetric printed_metric(const std::vector<std::optional<double>>& numbers, const std::string& no_number,
                             ProfileWindow window, bool is_measured) {
  PrintedMetric metric;
  const auto wanted = static_cast<size_t>(window.end) + 1, first = static_cast<size_t>(window.start);
  metric.is_full = numbers.size() >= wanted;
  if (numbers.empty()) {
    metric.problem = "no line that the script printed fits --metric-pattern";
  } else if (!metric.is_full && !(is_measured && numbers.size() > first)) {
    metric.problem = fmt::format(
        "{} printed line{} fit{} --metric-pattern, and {} are needed: {} as warm-up and the window (train longer, or "
        "lower --end-profile-step)",
        numbers.size(), numbers.size() == 1 ? "" : "s", numbers.size() == 1 ? "s" : "", wanted, first);
  }
  std::vector<double> counted;
  for (size_t i = first; i < std::min(wanted, numbers.size()) && metric.problem.empty(); ++i) {
    if (!numbers[i]) {
      metric.problem = no_number;
    } else if (!(*numbers[i] > 0)) {
      metric.problem = fmt::format("the number of --metric-pattern is {}: it must be above 0", *numbers[i]);
    } else {
      counted.push_back(*numbers[i]);
    }
  }
  if (metric.problem.empty()) metric.value = median_of(std::move(counted));
  return metric;
}

}  // namespace dsat::host
