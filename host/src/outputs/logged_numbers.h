// Reads numbers in lines that DeepSpeed prints, and summarizes a few measured steps.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_LOGGED_NUMBERS_H_
#define DSAT_HOST_OUTPUTS_LOGGED_NUMBERS_H_

#include <string_view>
#include <vector>

namespace dsat::host {

// Returns the number that follows `name` in the line; 0: there is no number, or it can be no time and no rate.
double value_after(std::string_view line, std::string_view name);

// For an even number of values, the mean of the two in the middle. Needs one value.
double median_of(std::vector<double> values);

// The standard deviation of `values`, divided by `middle`. Needs two values.
double relative_deviation(const std::vector<double>& values, double middle);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LOGGED_NUMBERS_H_
