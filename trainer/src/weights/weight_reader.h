// Files of weights from other programs, read tensor by tensor: safetensors, or what torch.save(state_dict) has written.
//
// The content decides the format. A state dict may lie under "state_dict", "model" or "module", as training programs
// save it. Nothing in a file is executed. Threading: one thread. Errors: dsat::Error, one line that names the file.
#ifndef DSAT_TRAINER_WEIGHTS_WEIGHT_READER_H_
#define DSAT_TRAINER_WEIGHTS_WEIGHT_READER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "weights/weight_spec.h"

namespace dsat::trainer {

class WeightReader {
 public:
  virtual ~WeightReader() = default;
  virtual std::vector<WeightSpec> specs() const = 0;  // of torch.save in the file's order, of safetensors by name
  // A new tensor on the host, contiguous.
  virtual at::Tensor read(const std::string& name) = 0;
};

std::unique_ptr<WeightReader> open_weight_reader(const std::string& path);

// Each format's own, for open_weight_reader().
std::unique_ptr<WeightReader> read_safetensors(const std::string& path);
std::unique_ptr<WeightReader> read_torch_file(const std::string& path);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_WEIGHT_READER_H_
