// A GPT (Radford et al., 2019: GPT-2): token and position embedding, pre-norm transformer blocks with causal attention,
// a final norm and a head of its own, not tied to the embedding, so that every parameter belongs to one layer. The loss
// is the cross entropy of the next token.
#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "model/model.h"

namespace dsat::trainer {
namespace {

constexpr double kInitStddev = 0.02;  // as GPT-2

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {weight.size(0)}, weight, bias, 1e-5);
}

// (batch, seq) whole numbers -> (batch, seq, hidden)
class EmbeddingLayer : public Layer {
 public:
  explicit EmbeddingLayer(const ModelOptions& o) : options_(o) {}

  std::vector<ParameterSpec> parameters() const override {
    return {spread("tokens", {options_.vocab, options_.hidden}, kInitStddev),
            spread("positions", {options_.seq, options_.hidden}, kInitStddev)};
  }
  at::Tensor forward(const at::Tensor& tokens, const Tensors& p) const override {
    return at::embedding(p[0], tokens) + p[1];
  }

 private:
  ModelOptions options_;
};

// Attention and a feed-forward part of four times the width, each added to its input: (batch, seq, hidden) in and out.
class Block : public Layer {
 public:
  // `mask`: (1, seq, seq), 0 where a position may attend, minus infinity where it may not; shared by all blocks.
  Block(const ModelOptions& o, at::Tensor mask) : options_(o), mask_(std::move(mask)) {}

  std::vector<ParameterSpec> parameters() const override {
    const int64_t h = options_.hidden;
    // The two projections back into the residual are scaled down by the number of additions to it, as in GPT-2.
    const double residual = kInitStddev / std::sqrt(2.0 * static_cast<double>(options_.layers));
    return {ones("attention_norm.weight", {h}),
            zeros("attention_norm.bias", {h}),
            spread("qkv.weight", {3 * h, h}, kInitStddev),
            zeros("qkv.bias", {3 * h}),
            spread("projection.weight", {h, h}, residual),
            zeros("projection.bias", {h}),
            ones("mlp_norm.weight", {h}),
            zeros("mlp_norm.bias", {h}),
            spread("mlp_in.weight", {4 * h, h}, kInitStddev),
            zeros("mlp_in.bias", {4 * h}),
            spread("mlp_out.weight", {h, 4 * h}, residual),
            zeros("mlp_out.bias", {h})};
  }

  at::Tensor forward(const at::Tensor& input, const Tensors& p) const override {
    const at::Tensor x = input + at::linear(attend(at::linear(norm(input, p[0], p[1]), p[2], p[3])), p[4], p[5]);
    return x + at::linear(at::gelu(at::linear(norm(x, p[6], p[7]), p[8], p[9])), p[10], p[11]);
  }

 private:
  // (batch, seq, 3 hidden) -> (batch, seq, hidden)
  at::Tensor attend(const at::Tensor& qkv) const {
    const int64_t batch = qkv.size(0), seq = options_.seq, heads = options_.heads, width = options_.hidden / heads;
    const at::Tensor split = qkv.view({batch, seq, 3, heads, width}).permute({2, 0, 3, 1, 4});
    // Batch and heads become one dimension, so that the two products are plain batched ones.
    const auto part = [&](int64_t i) { return split[i].reshape({batch * heads, seq, width}); };
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    // The mask is the product's start value: no operation of its own, and no memory for its result.
    const at::Tensor scores = at::baddbmm(mask_, part(0), part(1).transpose(1, 2), /*beta=*/1, /*alpha=*/scale);
    const at::Tensor mixed = at::bmm(at::softmax(scores, -1), part(2));
    return mixed.view({batch, heads, seq, width}).transpose(1, 2).reshape({batch, seq, options_.hidden});
  }

  ModelOptions options_;
  at::Tensor mask_;
};

// (batch, seq, hidden) -> (batch, seq, vocab)
class HeadLayer : public Layer {
 public:
  explicit HeadLayer(const ModelOptions& o) : options_(o) {}

  std::vector<ParameterSpec> parameters() const override {
    return {ones("norm.weight", {options_.hidden}), zeros("norm.bias", {options_.hidden}),
            spread("head.weight", {options_.vocab, options_.hidden}, kInitStddev)};
  }
  at::Tensor forward(const at::Tensor& input, const Tensors& p) const override {
    return at::linear(norm(input, p[0], p[1]), p[2]);
  }

 private:
  ModelOptions options_;
};

class Gpt : public Model {
 public:
  Gpt(const ModelOptions& options, at::ScalarType dtype, at::Device device) : options_(options) {
    const at::Tensor mask = at::full({1, options.seq, options.seq}, -std::numeric_limits<float>::infinity(),
                                     at::TensorOptions().dtype(dtype).device(device))
                                .triu_(1);
    layers_.push_back(std::make_unique<EmbeddingLayer>(options));
    for (int64_t i = 0; i < options.layers; ++i) layers_.push_back(std::make_unique<Block>(options, mask));
    layers_.push_back(std::make_unique<HeadLayer>(options));
  }

  // Tokens 0 to seq - 1 are the input, tokens 1 to seq the target.
  Batch batch(const RandomStream& stream, int64_t samples) const override {
    const at::Tensor tokens = random_integers(stream, {samples, options_.seq + 1}, options_.vocab);
    return {tokens.narrow(1, 0, options_.seq).contiguous(), tokens.narrow(1, 1, options_.seq).reshape({-1})};
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
    // In fp32 whatever the model's type is: a sum over the vocabulary is too coarse in 16 bits.
    return at::cross_entropy_loss(output.view({-1, options_.vocab}).to(at::kFloat), target);
  }

 private:
  ModelOptions options_;
};

}  // namespace

std::unique_ptr<Model> make_gpt(const ModelOptions& options, at::ScalarType dtype, at::Device device) {
  return std::make_unique<Gpt>(options, dtype, device);
}

}  // namespace dsat::trainer
