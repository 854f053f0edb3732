// Whether a file of weights is one of a model.
//
// Threading: a pure function. Errors: dsat::Error, one line that names the file and the tensor.
#ifndef DSAT_TRAINER_WEIGHTS_CHECK_WEIGHTS_H_
#define DSAT_TRAINER_WEIGHTS_CHECK_WEIGHTS_H_

#include <string>
#include <vector>

#include "weights/weight_spec.h"

namespace dsat::trainer {

// Throws if a tensor of the model is missing in the file, or of another shape. Returns the names that only the file
// has.
std::vector<std::string> check_weights(const std::string& file, const std::vector<WeightSpec>& in_file,
                                       const std::vector<WeightSpec>& of_model);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_CHECK_WEIGHTS_H_
