// How much better the best is than the user's own configuration.
//
// The gain is the ratio of their metrics, turned so that above 1 is better. Its 95 % interval is Student's t on the
// difference of logarithms (noise.h). For the best only the measurements of the comparison count, since they were made
// after the choice. Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FINALS_GAIN_H_
#define DSAT_HOST_FINALS_GAIN_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"
#include "finals/noise.h"
#include "record/trial.h"

namespace dsat::host {

// `best`: values from after the choice; empty: the gain comes from `before` and has no interval.
Gain gain_between(const std::vector<double>& best, const std::vector<double>& before, const std::vector<double>& own,
                  const Repeats& others);

// A trial's measurement; nullopt: the trial measured nothing or is a duplicate.
std::optional<double> value_of(const Trial& trial, const std::string& metric, bool maximise);

// The trials whose values count. Those after the choice are the comparison's, and all of a configuration that began in
// the finals (simpler.h).
enum class Measured { at_any_time, after_choice, before_choice };
// The values of a configuration, in the order of trials.
std::vector<double> values_of(const std::vector<Trial>& trials, const std::string& identity, const std::string& metric,
                              bool maximise, Measured when = Measured::at_any_time);
// The repeats of all configurations but `a` and `b`.
Repeats repeats_but(const std::vector<Trial>& trials, const std::string& metric, bool maximise, const std::string& a,
                    const std::string& b);

// The gain of the best over the user's own. nullopt: one of them was not measured, or the script ignores its
// configuration (ignored_batch.h).
std::optional<Gain> gain_over_own(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                  const std::string& baseline_identity, uint64_t best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_GAIN_H_
