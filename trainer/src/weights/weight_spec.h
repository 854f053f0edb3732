// A tensor of a model's state dict: its name, shape and type, and what the types are called in files.
//
// Threading: values and pure functions. Errors: dsat::Error that names the tensor.
#ifndef DSAT_TRAINER_WEIGHTS_WEIGHT_SPEC_H_
#define DSAT_TRAINER_WEIGHTS_WEIGHT_SPEC_H_

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dsat::trainer {

struct WeightSpec {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::string> aliases{};  // other names of the same tensor: a tied parameter's

  int64_t numel() const;
  size_t bytes() const { return static_cast<size_t>(numel()) * c10::elementSize(dtype); }
};

struct WeightType {
  at::ScalarType dtype;
  const char* safetensors;    // "F32"
  const char* torch_storage;  // "FloatStorage"
};

// Throws where files have no such type.
const WeightType& weight_type(const std::string& tensor, at::ScalarType dtype);
// As a checkpoint describes it: the name in safetensors, or LibTorch's where files have no such type.
std::string described_type(at::ScalarType dtype);
// nullptr: unknown.
const WeightType* type_of_safetensors(const std::string& name);
const WeightType* type_of_torch_storage(const std::string& name);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_WEIGHT_SPEC_H_
