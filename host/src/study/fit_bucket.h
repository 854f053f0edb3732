// A reduce bucket that the study would leave as it is, though it cannot lie on the device beside a model.
#ifndef DSAT_HOST_STUDY_FIT_BUCKET_H_
#define DSAT_HOST_STUDY_FIT_BUCKET_H_

#include <optional>
#include <string>

#include "study/plan.h"

namespace dsat::host {

// For a study without the default axes: DeepSpeed allocates the whole bucket whatever the model's size, so where the
// configuration's takes more than a quarter of a device's memory the space gets the sizes below as an axis, and the
// base configuration the largest of them. A list of the user's own stays as it is. What was done, for a notice.
std::optional<std::string> fit_bucket(Plan& plan);

// The bucket that fit_bucket() replaced, in elements; nullopt: the base configuration has the user's own.
std::optional<int64_t> replaced_bucket(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_FIT_BUCKET_H_
