// A model as a chain of layers whose parameters live elsewhere.
//
// A layer names its parameters (ParameterSpec) and computes with tensors that it is handed; who holds them, whole or
// partitioned, is the engine's matter. That is what lets stage 3 gather one layer at a time.
// Shapes: every batch has its samples in the first dimension. Ownership: a model owns its layers; parameters are
// borrowed for a forward. Threading: immutable after construction; the compute thread. Errors: what LibTorch throws.
#ifndef DSAT_TRAINER_MODEL_MODEL_H_
#define DSAT_TRAINER_MODEL_MODEL_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "base/random.h"
#include "layout/parameter.h"
#include "settings/options.h"

namespace dsat::trainer {

using Tensors = std::vector<at::Tensor>;

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::vector<ParameterSpec> parameters() const = 0;
  // `parameters` in the order of parameters(). Changes nothing in place: backward may need the input.
  virtual at::Tensor forward(const at::Tensor& input, const Tensors& parameters) const = 0;
};

struct Batch {
  at::Tensor input;
  at::Tensor target;
};

class Model {
 public:
  virtual ~Model() = default;
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  // Random samples, on the host; the same stream gives the same batch on every rank and device.
  virtual Batch batch(const RandomStream& stream, int64_t samples) const = 0;
  // A scalar in fp32, the mean over the batch.
  virtual at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const = 0;

 protected:
  std::vector<std::unique_ptr<Layer>> layers_;
};

// `dtype`: the type of parameters and activations. `device`: where they are computed.
std::unique_ptr<Model> make_gpt(const ModelOptions& options, at::ScalarType dtype, at::Device device = at::kCPU);
std::unique_ptr<Model> make_resnet(const ModelOptions& options, at::ScalarType dtype);
std::unique_ptr<Model> make_mlp(const ModelOptions& options, at::ScalarType dtype);
std::unique_ptr<Model> make_model(const ModelOptions& options, at::ScalarType dtype, at::Device device = at::kCPU);

// Random tensors for batches, on the host: uniform in [-1, 1), or whole numbers in [0, limit).
at::Tensor random_values(const RandomStream& stream, at::IntArrayRef shape, at::ScalarType dtype);
at::Tensor random_integers(const RandomStream& stream, at::IntArrayRef shape, int64_t limit);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_MODEL_H_
