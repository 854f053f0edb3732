// Curriculum learning and random-LTD: DeepSpeed's sections that make the first steps of a run easier (shorter) than its
// last ones.
//
// A trial is only a few steps long, so what it measures and what fits would hold for the easy steps alone.
// Threading: pure functions. Errors: none; a section that DeepSpeed would refuse is left to it.
#ifndef DSAT_CONFIG_CURRICULUM_H_
#define DSAT_CONFIG_CURRICULUM_H_

#include "dsat/error.h"

namespace dsat::config {

// Makes every curriculum that is switched on have its full difficulty from the first step on, and random-LTD keep all
// tokens. False: there is none of them.
bool train_at_full_difficulty(Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_CURRICULUM_H_
