// A ResNet (He et al., 2016): depths 18, 34 (basic blocks), 50, 101, 152 (bottlenecks) with four stages of 64 to 512
// channels, and 6n + 2 with three stages of 16 to 64 for small images.
//
// Group normalisation (Wu and He, 2018) in place of batch normalisation: its result does not depend on how a batch is
// cut into micro batches, so runs of the same samples can be compared.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include <cmath>

#include "model/model.h"

namespace dsat::trainer {
namespace {

constexpr int64_t kClasses = 10;
constexpr int64_t kGroups = 8;

// Initial spread for ReLU after it (He et al., 2015), from the number of inputs to an output.
ParameterSpec convolution(const std::string& name, int64_t out, int64_t in, int64_t kernel) {
  return spread(name, {out, in, kernel, kernel}, std::sqrt(2.0 / static_cast<double>(in * kernel * kernel)));
}

// Padded so that a stride of 1 keeps the image's size.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  return at::conv2d(x, weight, {}, stride, weight.size(2) / 2);
}

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::group_norm(x, kGroups, weight, bias);
}

// Convolution, norm and ReLU on the image.
class Stem : public Layer {
 public:
  explicit Stem(int64_t channels) : channels_(channels) {}
  std::vector<ParameterSpec> parameters() const override {
    return {convolution("conv", channels_, 3, 3), ones("norm.weight", {channels_}), zeros("norm.bias", {channels_})};
  }
  at::Tensor forward(const at::Tensor& x, const Tensors& p) const override {
    return at::relu(norm(convolve(x, p[0], 1), p[1], p[2]));
  }

 private:
  int64_t channels_;
};

// Channels in, in between and out.
struct BlockShape {
  int64_t in, middle, out, stride;
  bool bottleneck;
  // The shortcut needs a convolution where it cannot be the input itself.
  bool projects() const { return stride != 1 || in != out; }
};

// A residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1.
class ResidualBlock : public Layer {
 public:
  explicit ResidualBlock(const BlockShape& shape) : shape_(shape) {}

  std::vector<ParameterSpec> parameters() const override {
    const BlockShape& s = shape_;
    std::vector<ParameterSpec> specs;
    if (s.projects()) add(specs, "shortcut", s.out, s.in, 1);
    if (s.bottleneck) {
      add(specs, "1", s.middle, s.in, 1);
      add(specs, "2", s.middle, s.middle, 3);
      add(specs, "3", s.out, s.middle, 1);
    } else {
      add(specs, "1", s.middle, s.in, 3);
      add(specs, "2", s.out, s.middle, 3);
    }
    return specs;
  }

  at::Tensor forward(const at::Tensor& input, const Tensors& p) const override {
    size_t at = 0;  // the next convolution's place in `p`, as parameters() lists them
    const auto next = [&](const at::Tensor& x, int64_t stride) {
      const at::Tensor y = norm(convolve(x, p[at], stride), p[at + 1], p[at + 2]);
      at += 3;
      return y;
    };
    // The shortcut comes first here as in parameters().
    const at::Tensor shortcut = shape_.projects() ? next(input, shape_.stride) : input;
    at::Tensor x = input;
    if (shape_.bottleneck) {
      x = at::relu(next(x, 1));
      x = at::relu(next(x, shape_.stride));
    } else {
      x = at::relu(next(x, shape_.stride));
    }
    return at::relu(next(x, 1) + shortcut);
  }

 private:
  static void add(std::vector<ParameterSpec>& specs, const std::string& name, int64_t out, int64_t in, int64_t kernel) {
    specs.push_back(convolution("conv" + name, out, in, kernel));
    specs.push_back(ones("norm" + name + ".weight", {out}));
    specs.push_back(zeros("norm" + name + ".bias", {out}));
  }

  BlockShape shape_;
};

// The mean over the image, then a linear map to the classes.
class Classifier : public Layer {
 public:
  explicit Classifier(int64_t channels) : channels_(channels) {}
  std::vector<ParameterSpec> parameters() const override {
    const double stddev = std::sqrt(1.0 / static_cast<double>(channels_));
    return {spread("weight", {kClasses, channels_}, stddev), zeros("bias", {kClasses})};
  }
  at::Tensor forward(const at::Tensor& x, const Tensors& p) const override {
    return at::linear(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1), p[0], p[1]);
  }

 private:
  int64_t channels_;
};

struct ResNetPlan {
  std::vector<int64_t> blocks;  // per stage
  int64_t width;                // channels of the first stage
  bool bottleneck;
};

// Table 1 of He et al., 2016, and section 4.2 (6n + 2) for other depths.
ResNetPlan plan_of(int64_t depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, 64, false};
    case 34:
      return {{3, 4, 6, 3}, 64, false};
    case 50:
      return {{3, 4, 6, 3}, 64, true};
    case 101:
      return {{3, 4, 23, 3}, 64, true};
    case 152:
      return {{3, 8, 36, 3}, 64, true};
    default:
      return {std::vector<int64_t>(3, (depth - 2) / 6), 16, false};
  }
}

class ResNet : public Model {
 public:
  ResNet(const ModelOptions& options, at::ScalarType dtype) : image_(options.image), dtype_(dtype) {
    // LibTorch would choose oneDNN for some micro batches and not for others, and oneDNN takes a second copy of each
    // weight's gradient: the peak would jump where the choice changes. Only oneDNN has convolutions in bf16.
    if (dtype == at::kFloat) at::globalContext().setUserEnabledMkldnn(false);
    const ResNetPlan plan = plan_of(options.depth);
    int64_t channels = plan.width, middle = plan.width;
    layers_.push_back(std::make_unique<Stem>(channels));
    for (size_t stage = 0; stage < plan.blocks.size(); ++stage, middle *= 2) {
      const int64_t out = plan.bottleneck ? 4 * middle : middle;
      for (int64_t i = 0; i < plan.blocks[stage]; ++i) {
        const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
        layers_.push_back(std::make_unique<ResidualBlock>(BlockShape{channels, middle, out, stride, plan.bottleneck}));
        channels = out;
      }
    }
    layers_.push_back(std::make_unique<Classifier>(channels));
  }

  Batch batch(const RandomStream& stream, int64_t samples) const override {
    const at::Tensor images = random_values(stream, {samples, 3, image_, image_}, dtype_);
    // Labels come from a stream of their own, whose seed is a number of the images' stream.
    at::Tensor labels = random_integers(RandomStream(stream.bits(0), 1), {samples}, kClasses);
    return {images, labels};
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
    // In fp32, as everywhere: the sum over classes is too coarse in 16 bits.
    return at::cross_entropy_loss(output.to(at::kFloat), target);
  }

 private:
  int64_t image_;
  at::ScalarType dtype_;
};

}  // namespace

std::unique_ptr<Model> make_resnet(const ModelOptions& options, at::ScalarType dtype) {
  return std::make_unique<ResNet>(options, dtype);
}

}  // namespace dsat::trainer
