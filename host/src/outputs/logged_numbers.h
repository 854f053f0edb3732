// Numbers in lines that DeepSpeed prints, and what a few measured steps say together.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_LOGGED_NUMBERS_H_
#define DSAT_HOST_OUTPUTS_LOGGED_NUMBERS_H_

#include <string_view>
#include <vector>

namespace dsat::host {

// The number that follows `name` in the line; 0: there is none, or none that a time or a rate can be.
double value_after(std::string_view line, std::string_view name);

// The median; of an even number of values the mean of the two in the middle. Needs one value.
double median_of(std::vector<double> values);

// Their standard deviation over `middle`. Needs two values.
double relative_deviation(const std::vector<double>& values, double middle);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LOGGED_NUMBERS_H_
