// Decides on a strategy's request before it costs anything: the merged configuration, its identity, its validity.
//
// Threading: pure functions. Errors: none; what is wrong with a request is part of the answer.
#ifndef DSAT_HOST_STUDY_STATE_ADMISSION_H_
#define DSAT_HOST_STUDY_STATE_ADMISSION_H_

#include <string>

#include "plan/plan.h"
#include "record/trial.h"

namespace dsat::host {

struct Admission {
  Json config;  // merged and complete, without `autotuning`
  bool model_info = false;
  std::string identity;
  std::string invalid;  // empty: valid; else one line that says which rule is broken
};

// A pure function of plan and overrides; never throws.
Admission admit(const Plan& plan, const Json& overrides);

// The configuration with the user's own `autotuning` keys.
Json config_to_run(const Plan& plan, const Json& config);

// The runner's description of a trial. A trial of the verification trains more steps.
TrialSpec spec_of(const Plan& plan, const Trial& trial, bool has_train_batch = true);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_ADMISSION_H_
