// Reads the budget, and sums the trials' times by the slots that they ran on.
#include "study/device_hours.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/clock.h"
#include "dsat/error.h"

namespace dsat::host {

double parse_device_hours(const std::string& text) {
  static const std::regex form(R"((\d{1,9}(?:\.\d{1,9})?) ?(?:gpuh)?)");
  std::smatch match;
  const double hours = std::regex_match(text, match, form) ? std::stod(match[1].str()) : 0;
  if (hours > 0) return hours;
  throw Error(fmt::format("--budget {}: device-hours are needed, such as 40gpuh", text));
}

double device_hours(const std::vector<Trial>& trials) {
  double hours = 0;
  for (const Trial& trial : trials) {
    const auto start = parse_rfc3339(trial.record.started_at), end = parse_rfc3339(trial.record.ended_at);
    if (!start || !end || trial.record.duplicate_of) continue;
    const std::chrono::duration<double, std::ratio<3600>> time = *end - *start;
    hours += std::max(0.0, time.count()) * static_cast<double>(trial.record.slots.size());
  }
  return hours;
}

}  // namespace dsat::host
