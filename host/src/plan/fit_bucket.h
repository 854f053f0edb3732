// Finds a reduce bucket of the user that is too large for the device, and then tunes the bucket.
#ifndef DSAT_HOST_PLAN_FIT_BUCKET_H_
#define DSAT_HOST_PLAN_FIT_BUCKET_H_

#include <optional>
#include <string>

#include "plan/plan.h"

namespace dsat::host {

// For a study without the default axes. DeepSpeed allocates the whole bucket whatever the model's size. If the
// configuration's bucket needs more than a quarter of a device's memory, the smaller usual sizes become an axis of the
// space, and the base configuration gets the largest of them. A list from the user is not changed. Returns a notice of
// the change; nullopt: no change.
std::optional<std::string> fit_bucket(Plan& plan);

// The bucket that fit_bucket() replaced, in elements; nullopt: the base configuration has the user's bucket.
std::optional<int64_t> replaced_bucket(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_FIT_BUCKET_H_
