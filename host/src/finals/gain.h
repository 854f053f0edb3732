// How much better the best is than the user's own configuration.
//
// The gain is the ratio of their metrics, turned so that above 1 is better, with its 95 % interval: Student's t on the
// difference of logarithms (noise.h). Only measurements of the comparison count for the best, since they were made
// after it was chosen. Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FINALS_GAIN_H_
#define DSAT_HOST_FINALS_GAIN_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"
#include "finals/noise.h"
#include "record/trial.h"

namespace dsat::host {

// `best`: values from after the choice. If it is empty, the gain is that of `before` and has no interval.
Gain gain_between(const std::vector<double>& best, const std::vector<double>& before, const std::vector<double>& own,
                  const Repeats& others);

// A trial's measurement; nullopt: it made none, or is a duplicate.
std::optional<double> value_of(const Trial& trial, const std::string& metric, bool maximise);

// Which trials' values count: those of the comparison were measured after the best was chosen.
enum class Measured { at_any_time, in_comparison, before_comparison };
// The values of a configuration, in the order of trials.
std::vector<double> values_of(const std::vector<Trial>& trials, const std::string& identity, const std::string& metric,
                              bool maximise, Measured when = Measured::at_any_time);
// The repeats of all configurations but these two.
Repeats repeats_but(const std::vector<Trial>& trials, const std::string& metric, bool maximise, const std::string& a,
                    const std::string& b);

// nullopt: the user's own configuration, or the best, was not measured, or the script ignores its configuration
// (ignored_batch.h).
std::optional<Gain> gain_over_own(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                  const std::string& baseline_identity, uint64_t best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_GAIN_H_
