// The pickle inside a file of torch.save: a state dict as names and the places of the tensors' elements.
//
// Only what torch.save writes of tensors, parameters, numbers, texts, lists and dicts means something; every other
// object is skipped, and nothing is executed. Threading: pure functions. Errors: dsat::Error without the file's name.
#ifndef DSAT_TRAINER_WEIGHTS_TORCH_PICKLE_H_
#define DSAT_TRAINER_WEIGHTS_TORCH_PICKLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_spec.h"

namespace dsat::trainer {

// A tensor as a view of a storage, which is the archive's record data/KEY.
struct PickledTensor {
  WeightSpec spec;
  std::string key;
  int64_t storage_numel = 0;
  int64_t offset = 0;  // elements
  std::vector<int64_t> stride;
};

// spec.name and its aliases are all names of the tensor.
std::string pickle_state_dict(const std::vector<PickledTensor>& tensors);

// Those of the dict itself, or of the first of "state_dict", "model" and "module" in it that is a dict, in their order.
// A tuple or a list has names by number.
std::vector<PickledTensor> unpickle_state_dict(std::string_view pickle);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_TORCH_PICKLE_H_
