// Curriculum learning and random-LTD: DeepSpeed's sections that make the first steps of a run shorter than the last.
//
// A trial runs a few steps only, so it would measure the short steps alone.
// Threading: pure functions. Errors: none; DeepSpeed itself refuses a bad section.
#ifndef DSAT_CONFIG_CURRICULUM_H_
#define DSAT_CONFIG_CURRICULUM_H_

#include "dsat/error.h"

namespace dsat::config {

// Sets every active curriculum to its full difficulty from the first step on, and random-LTD to all tokens. False:
// neither is active.
bool train_at_full_difficulty(Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_CURRICULUM_H_
