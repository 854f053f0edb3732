// The baseline: the user's own configuration, which the tuned one is compared with.
//
// Purpose: the baseline has the user's numbers. Batch sizes that are left out follow from those that are given, as
//   DeepSpeed fills them in. For Hugging Face's Trainer the command's flags stand in for "auto". If nothing gives a
//   micro batch, there is no baseline: DeepSpeed refuses such a file, so the script adds something that we do not know,
//   and a guess would claim a gain over something that the user never ran.
// Threading: pure functions. Errors: none; the reason for no baseline is part of the answer.
#ifndef DSAT_HOST_STUDY_STATE_BASELINE_CONFIGURATION_H_
#define DSAT_HOST_STUDY_STATE_BASELINE_CONFIGURATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace dsat::host {

struct BaselineConfiguration {
  Json overrides;        // over the plan's base configuration
  std::string identity;  // of its trials; empty: there is none
  std::string why_not;   // one line; empty: there is one
};

BaselineConfiguration baseline_configuration(const Plan& plan);

// The baseline's micro batch, if it gives one and the space allows it.
std::optional<int64_t> baseline_micro_batch(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_BASELINE_CONFIGURATION_H_
