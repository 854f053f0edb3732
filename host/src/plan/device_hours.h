// What trials cost: the hours that they had their devices, summed over the devices.
//
// Threading: control thread. Units: device-hours. Errors: dsat::Error.
#ifndef DSAT_HOST_PLAN_DEVICE_HOURS_H_
#define DSAT_HOST_PLAN_DEVICE_HOURS_H_

#include <string>
#include <vector>

#include "record/journal.h"
#include "record/trial.h"

namespace dsat::host {

// Reads "40gpuh", "1.5 gpuh" and "40". Throws for anything else and for a number that is not above 0.
double parse_device_hours(const std::string& text);

// The cost of the trial's last run, which ended then. Where its start or its end is not known it costs nothing.
double device_hours(const TrialRecord& record, const std::string& ended_at);
// The cost of the last runs of all trials. One that still runs costs nothing yet.
double device_hours(const std::vector<Trial>& trials);
// The cost of all runs of all trials, from the journal's row; 0: no run has ended.
double spent_device_hours(Journal& journal);

// Is the budget spent with so many hours? An empty one is none. Throws as parse_device_hours does.
bool is_spent(const std::string& budget, double hours);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_DEVICE_HOURS_H_
