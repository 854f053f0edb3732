// The peak of devices by their names, for the share of it that a model's FLOPs reach (MFU).
// Threading: pure functions. Units: FLOP/s of dense bf16. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_PLAN_DEVICE_PEAK_H_
#define DSAT_HOST_PLAN_DEVICE_PEAK_H_

#include <string>

namespace dsat::host {

extern const char* const kDevicesJson;  // host/data/devices.json, with the source of each number

// Throws Error for a name that is not there, with those that are.
double device_peak_flops(const std::string& name);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_DEVICE_PEAK_H_
