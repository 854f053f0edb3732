// Random pictures of the size of ImageNet's, and a small residual network for them; both parallel examples use it.
#ifndef IMAGES_H_
#define IMAGES_H_

#include <torch/nn/functional.h>
#include <torch/nn/modules.h>

#include "dsat/trainer/data_loader.h"

namespace images {

constexpr int64_t kClasses = 10;

struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t stride) {
    const auto conv = [&](int64_t from, int64_t to, int64_t kernel, int64_t step) {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, kernel).stride(step).padding(kernel / 2).bias(false));
    };
    first = register_module("first", conv(in, out, 3, stride));
    second = register_module("second", conv(out, out, 3, 1));
    shortcut = register_module("shortcut", conv(in, out, 1, stride));
    // Group norm sees one sample at a time: how a batch is cut into micro batches changes nothing.
    norm = register_module("norm", torch::nn::GroupNorm(torch::nn::GroupNormOptions(4, out)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(norm(second(torch::relu(first(x)))) + shortcut(x));
  }
  torch::nn::Conv2d first{nullptr}, second{nullptr}, shortcut{nullptr};
  torch::nn::GroupNorm norm{nullptr};
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t width) {
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int64_t in = 3, out = width; out <= 4 * width; in = out, out *= 2) blocks->push_back(Block(in, out, 2));
    head = register_module("head", torch::nn::Linear(4 * width, kClasses));
  }
  // [samples, 3, height, width] to [samples, classes].
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& block : *blocks) x = block->as<BlockImpl>()->forward(x);
    return head(x.mean({2, 3}));
  }
  torch::nn::ModuleList blocks;
  torch::nn::Linear head{nullptr};
};

inline torch::Tensor loss_of(const torch::Tensor& logits, const torch::Tensor& labels) {
  return torch::nn::functional::cross_entropy(logits.to(torch::kFloat), labels);
}

// Every sample is a function of its number: nothing is stored, and every rank sees the same data set.
class RandomImages : public dsat::trainer::Dataset {
 public:
  RandomImages(int64_t count, int64_t side) : count_(count), side_(side) {}
  int64_t size() const override { return count_; }
  dsat::trainer::Tensors get(const std::vector<int64_t>& indices) const override {
    std::vector<torch::Tensor> pictures;
    std::vector<int64_t> labels;
    for (const int64_t index : indices) {
      const auto position = torch::arange(3 * side_ * side_, torch::kFloat).view({3, side_, side_});
      labels.push_back(index % kClasses);
      pictures.push_back(torch::sin(position * (1 + labels.back()) * 0.1 + static_cast<double>(index)));
    }
    return {torch::stack(pictures), torch::tensor(labels)};
  }

 private:
  int64_t count_, side_;
};

}  // namespace images

#endif  // IMAGES_H_
