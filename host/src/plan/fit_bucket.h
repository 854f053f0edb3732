// Finds a reduce bucket of the user that is too large to lie on the device beside the model. Such a study tunes the
// bucket although it would not tune it otherwise.
#ifndef DSAT_HOST_PLAN_FIT_BUCKET_H_
#define DSAT_HOST_PLAN_FIT_BUCKET_H_

#include <optional>
#include <string>

#include "plan/plan.h"

namespace dsat::host {

// For a study without the default axes. DeepSpeed allocates the whole bucket whatever the model's size. If the
// configuration's bucket takes more than a quarter of a device's memory, the space gets the smaller usual sizes as an
// axis, and the base configuration gets the largest of them. A list that the user wrote stays as it is. Returns what
// was done, for a notice; nullopt: nothing.
std::optional<std::string> fit_bucket(Plan& plan);

// The bucket that fit_bucket() replaced, in elements; nullopt: the base configuration has the user's own.
std::optional<int64_t> replaced_bucket(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_FIT_BUCKET_H_
