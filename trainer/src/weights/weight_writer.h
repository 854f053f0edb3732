// Files of weights for other programs, written tensor by tensor: OUT.safetensors, or OUT.pt for torch.load.
//
// The file appears whole under its name, or not at all. Threading: one thread. Ownership: values are borrowed for the
// call. Errors: dsat::Error, one line that names the file; the file that was there before is then as it was.
#ifndef DSAT_TRAINER_WEIGHTS_WEIGHT_WRITER_H_
#define DSAT_TRAINER_WEIGHTS_WEIGHT_WRITER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "weights/weight_spec.h"

namespace dsat::trainer {

class WeightWriter {
 public:
  virtual ~WeightWriter() = default;
  // The next tensor in the order of the specs: on the host, contiguous and of the spec's type.
  virtual void write(const at::Tensor& values) = 0;
  // Waits for the disk and gives the file its name.
  virtual void finish() = 0;
};

// Throws for a name that ends otherwise.
void check_weights_name(const std::string& path);

// The end of the name decides the format. Refused at once: a folder without room, or that cannot be written.
std::unique_ptr<WeightWriter> open_weight_writer(const std::string& path, const std::vector<WeightSpec>& specs);

// Each format's own, for open_weight_writer().
std::unique_ptr<WeightWriter> write_safetensors(const std::string& path, const std::vector<WeightSpec>& specs);
std::unique_ptr<WeightWriter> write_torch_file(const std::string& path, const std::vector<WeightSpec>& specs);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_WEIGHT_WRITER_H_
