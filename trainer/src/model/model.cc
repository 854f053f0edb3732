// Chooses a built-in model by its kind, and draws batches: element i of a tensor is number i of its random stream, so a
// batch is the same on every rank and machine.
#include "model/model.h"

#include <ATen/ops/empty.h>

namespace dsat::trainer {

std::unique_ptr<Model> make_model(const ModelOptions& options, at::ScalarType dtype, at::Device device) {
  switch (options.kind) {
    case ModelKind::gpt:
      return make_gpt(options, dtype, device);
    case ModelKind::resnet:
      return make_resnet(options, dtype);
    case ModelKind::mlp:
      break;
  }
  return make_mlp(options, dtype);
}

at::Tensor random_values(const RandomStream& stream, at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  float* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = stream.uniform(static_cast<uint64_t>(i));
  return values.to(dtype);
}

at::Tensor random_integers(const RandomStream& stream, at::IntArrayRef shape, int64_t limit) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kLong));
  int64_t* data = values.data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = stream.below(static_cast<uint64_t>(i), limit);
  return values;
}

}  // namespace dsat::trainer
