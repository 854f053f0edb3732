// Measured values as text for people, with the units of docs/trial.md. Threading: pure functions.
#ifndef DSAT_HOST_FORMAT_H_
#define DSAT_HOST_FORMAT_H_

#include <cstdint>
#include <string>

#include "dsat/host/record.h"

namespace dsat::host {

// Three significant digits with a prefix: "7.5 G", "124 M"; for counts and rates.
std::string format_count(double value);

// "12.3 TFLOP/s", "456 samples/s", "7.89 ms": a canonical metric by its name.
std::string format_metric(const std::string& metric, double value);

// "3.1 x your own configuration, 95 % interval 2.9 to 3.3"; `best`: the best trial.
std::string format_gain(const Gain& gain, uint64_t best);

// "made of: the best 6344 samples/s (measured once after its choice, 1 earlier measurement left out), your own 447.1
// samples/s (measured once)"; empty if the gain has no interval.
std::string format_gain_sides(const Gain& gain, const std::string& metric);

// ", on 8 devices in place of 2"; empty if trials of both configurations have the same size.
std::string format_devices(const Json& own, const Json& best);

// "a step takes 573 ms, of which the engine takes 5.43 ms (does the script wait for its data?): 1.8 x your own
// configuration by the clock"
std::string format_end_to_end(const EndToEnd& end_to_end);

// "checked: its keys at your own batch ...", "not checked against your own configuration: --no-twin"
std::string format_check(const TwinCheck& check);

}  // namespace dsat::host

#endif  // DSAT_HOST_FORMAT_H_
