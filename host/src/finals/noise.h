// The noise of measurements, and how far apart two configurations are in spite of it.
//
// Values are natural logarithms of the metric, turned so that larger is better: noise is then a share of the value, and
// a ratio a difference. One value is its configuration's mean plus a normal error of a standard deviation that all
// configurations share. Repeats of a configuration show that deviation. A prior stands in before there are any: a
// scaled inverse chi-squared distribution (Gelman et al., Bayesian Data Analysis, 2.6). Its degrees of freedom are few,
// so that few repeats claim little, and it gives way to repeats that are noisier. Differences of means then follow
// Student's t distribution. Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FINALS_NOISE_H_
#define DSAT_HOST_FINALS_NOISE_H_

#include <vector>

#include "dsat/error.h"

namespace dsat::host {

// The deviation that runs of a few steps showed from trial to trial, and how many degrees of freedom it is worth.
inline constexpr double kPriorDeviation = 0.02;
inline constexpr double kPriorDegrees = 2;

// Sums over configurations that were measured more than once.
struct Repeats {
  double squares = 0;  // of the distances from each configuration's mean
  double degrees = 0;  // of freedom: measurements less configurations

  void add(const std::vector<double>& values);
};
Json to_json(const Repeats& repeats);
Repeats repeats_from_json(const Json& json);

// Mean of the values of a configuration.
double mean_of(const std::vector<double>& values);

// The variance of one measurement, with the prior.
double pooled_variance(const Repeats& repeats);

// The difference of two means: Student's t distribution, moved and scaled.
struct Difference {
  double mean = 0;
  double scale = 0;
  double degrees = 1;

  double half_width() const;             // of the 95 % interval
  double chance_above(double by) const;  // that the true difference is larger than `by`
  double expected_gain() const;          // the mean of the difference where it is above 0, and 0 elsewhere
};

// The difference of two configurations with these values, at least one each. `others` holds the repeats of all other
// configurations. `a_before`: measurements of `a` from before it was chosen, which flatter it. They do not count for
// its mean, but their distance from the later ones counts as noise.
Difference difference(const std::vector<double>& a, const std::vector<double>& b, Repeats others,
                      const std::vector<double>& a_before = {});

// How much one more measurement of each of the two is expected to gain, as it may turn out that the other one is better
// (the knowledge gradient: Frazier, Powell and Dayanik 2009).
double gain_of_another(const std::vector<double>& a, const std::vector<double>& b, const Repeats& others);

// The distribution function of Student's t distribution; `degrees`: at least 1, interpolated between whole numbers.
// Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
double student_cdf(double t, double degrees);
// The t below which the share `probability` of the distribution lies. `probability` is above a half.
double student_quantile(double probability, double degrees);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_NOISE_H_
