// Reads the budget, and sums the trials' times by the slots that they ran on.
#include "study/device_hours.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/clock.h"
#include "dsat/error.h"

namespace dsat::host {

double parse_device_hours(const std::string& text) {
  double hours = 0;
  if (RE2::FullMatch(text, R"((\d{1,9}(?:\.\d{1,9})?) ?(?:gpuh)?)", &hours) && hours > 0) return hours;
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

bool is_spent(const std::string& budget, const std::vector<Trial>& trials) {
  return !budget.empty() && device_hours(trials) >= parse_device_hours(budget);
}

}  // namespace dsat::host
