// Reads the budget, and sums the trials' times over the slots on which they ran.
#include "plan/device_hours.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/clock.h"
#include "dsat/error.h"
#include "record/devices.h"

namespace dsat::host {

double parse_device_hours(const std::string& text) {
  double hours = 0;
  if (RE2::FullMatch(text, R"((\d{1,9}(?:\.\d{1,9})?) ?(?:gpuh)?)", &hours) && hours > 0) return hours;
  throw Error(fmt::format("--budget {}: device-hours are needed, such as 40gpuh", text));
}

double device_hours(const TrialRecord& record, const std::string& ended_at) {
  const auto start = parse_rfc3339(record.started_at), end = parse_rfc3339(ended_at);
  if (!start || !end || record.duplicate_of) return 0;
  const std::chrono::duration<double, std::ratio<3600>> time = *end - *start;
  return std::max(0.0, time.count()) * static_cast<double>(devices_in(record.slots));
}

double device_hours(const std::vector<Trial>& trials) {
  double hours = 0;
  for (const Trial& trial : trials) hours += device_hours(trial.record, trial.record.ended_at);
  return hours;
}

double spent_device_hours(Journal& journal) {
  const Json stored = journal.meta(kSpentDeviceHours).value_or(Json());
  return stored.is_number() ? stored.get<double>() : 0;
}

bool is_spent(const std::string& budget, double hours) {
  return !budget.empty() && hours >= parse_device_hours(budget);
}

}  // namespace dsat::host
