// The cost of trials: the hours in which they had their devices, summed over the devices.
// Threading: control thread. Units: device-hours. Errors: dsat::Error.
#ifndef DSAT_HOST_PLAN_DEVICE_HOURS_H_
#define DSAT_HOST_PLAN_DEVICE_HOURS_H_

#include <string>
#include <vector>

#include "record/journal.h"
#include "record/trial.h"

namespace dsat::host {

// Reads "40gpuh", "1.5 gpuh" and "40". Throws for anything else and for 0.
double parse_device_hours(const std::string& text);

// Returns the cost of the trial's last run, which ended at `ended_at`; 0 if its start or end is unknown.
double device_hours(const TrialRecord& record, const std::string& ended_at);
// Returns the cost of the last runs of all trials. A running trial costs nothing yet.
double device_hours(const std::vector<Trial>& trials);
// Returns the cost of all runs of all trials, from the journal's row; 0: no run has ended.
double spent_device_hours(Journal& journal);

// Whether `hours` use up the budget; an empty budget is unlimited. Throws like parse_device_hours.
bool is_spent(const std::string& budget, double hours);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_DEVICE_HOURS_H_
