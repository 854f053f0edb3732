// What trials cost: the hours that they had their devices, summed over the devices.
//
// Threading: pure functions. Units: device-hours. Errors: dsat::Error.
#ifndef DSAT_HOST_STUDY_DEVICE_HOURS_H_
#define DSAT_HOST_STUDY_DEVICE_HOURS_H_

#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// Reads "40gpuh", "1.5 gpuh" and "40". Throws for anything else and for a number that is not above 0.
double parse_device_hours(const std::string& text);

// The last run of each trial counts, from its start to its end. A trial that still runs costs nothing yet.
double device_hours(const std::vector<Trial>& trials);

// Have the trials had the whole budget? An empty one is none. Throws as parse_device_hours does.
bool is_spent(const std::string& budget, const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_DEVICE_HOURS_H_
