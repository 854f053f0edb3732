// A multi-layer perceptron: `layers` linear maps of hidden x hidden with ReLU between them, trained on the mean squared
// error to random targets. Nearly all of its memory is parameters.
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>

#include <cmath>

#include "model/model.h"

namespace dsat::trainer {
namespace {

// ReLU is applied to the input and not to the output, so that the last layer's output is unbounded.
class MlpLayer : public Layer {
 public:
  MlpLayer(int64_t hidden, bool is_first) : hidden_(hidden), is_first_(is_first) {}

  std::vector<ParameterSpec> parameters() const override {
    const double stddev = std::sqrt(2.0 / static_cast<double>(hidden_));  // He et al., 2015: for ReLU
    return {spread("weight", {hidden_, hidden_}, stddev), zeros("bias", {hidden_})};
  }
  at::Tensor forward(const at::Tensor& input, const Tensors& p) const override {
    return at::linear(is_first_ ? input : at::relu(input), p[0], p[1]);
  }

 private:
  int64_t hidden_;
  bool is_first_;
};

class Mlp : public Model {
 public:
  Mlp(const ModelOptions& options, at::ScalarType dtype) : hidden_(options.hidden), dtype_(dtype) {
    for (int64_t i = 0; i < options.layers; ++i) layers_.push_back(std::make_unique<MlpLayer>(hidden_, i == 0));
  }

  Batch batch(const RandomStream& stream, int64_t samples) const override {
    // One draw for inputs and targets. Targets stay fp32, as the loss is.
    const at::Tensor both = random_values(stream, {2, samples, hidden_}, at::kFloat);
    return {both[0].to(dtype_), both[1]};
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
    return at::mse_loss(output.to(at::kFloat), target);
  }

 private:
  int64_t hidden_;
  at::ScalarType dtype_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(const ModelOptions& options, at::ScalarType dtype) {
  return std::make_unique<Mlp>(options, dtype);
}

}  // namespace dsat::trainer
