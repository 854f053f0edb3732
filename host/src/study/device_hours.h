// What trials cost: the hours that they had their devices, summed over the devices.
//
// Threading: pure functions. Units: device-hours. Errors: dsat::Error.
#ifndef DSAT_HOST_STUDY_DEVICE_HOURS_H_
#define DSAT_HOST_STUDY_DEVICE_HOURS_H_

#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// "40gpuh", "1.5 gpuh", "40". Throws: anything else, or not above 0.
double parse_device_hours(const std::string& text);

// Of each trial its last run counts, from its start to its end; a trial that still runs costs nothing yet.
double device_hours(const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_DEVICE_HOURS_H_
