// The metric of a study: one of the names that trials report, or a number that they print.
// Threading: pure functions. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_PLAN_CHOOSE_METRIC_H_
#define DSAT_HOST_PLAN_CHOOSE_METRIC_H_

#include "plan/plan.h"

namespace dsat::host {

void check_metric_pattern(const StudyOptions& options);
void check_tokens(const StudyOptions& options);

// Sets the plan's metric and direction.
void choose_metric(const StudyOptions& options, Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_CHOOSE_METRIC_H_
