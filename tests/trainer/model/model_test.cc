// The built-in models: published sizes, finite losses, batches that only their stream decides; and the FLOPs counter,
// against counts that follow from the models' shapes.
#include "model/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "layout/layout.h"
#include "measure/flops.h"

namespace dsat::trainer {
namespace {

int64_t count_parameters(const Model& model) {
  int64_t count = 0;
  for (const auto& layer : model.layers()) {
    for (const ParameterSpec& spec : layer->parameters()) count += spec.numel();
  }
  return count;
}

ModelOptions resnet(int64_t depth) {
  ModelOptions options;
  options.kind = ModelKind::resnet;
  options.depth = depth;
  return options;
}

at::Tensor forward(const Model& model, const Batch& batch) {
  at::Tensor x = batch.input;
  for (const auto& layer : model.layers()) {
    Tensors parameters;
    for (const ParameterSpec& spec : layer->parameters()) {
      at::Tensor p = at::zeros(spec.shape, at::TensorOptions().dtype(at::kFloat)) + spec.offset;
      parameters.push_back(p.set_requires_grad(true));
    }
    x = layer->forward(x, parameters);
  }
  return model.loss(x, batch.target);
}

TEST(ModelTest, SizesOfTheGptAndTheMlp) {
  ModelOptions o;
  EXPECT_EQ(count_parameters(*make_model(o, at::kFloat)),
            512 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128 + 512 * 128);
  o.kind = ModelKind::mlp;
  EXPECT_EQ(count_parameters(*make_model(o, at::kFloat)), 4 * (128 * 128 + 128));
}

// Published counts with 10 classes and a 3x3 stem; a group norm has as many parameters as a batch norm.
TEST(ModelTest, SizesOfTheResNets) {
  EXPECT_EQ(count_parameters(*make_model(resnet(18), at::kFloat)), 11173962);
  EXPECT_EQ(count_parameters(*make_model(resnet(50), at::kFloat)), 23520842);
}

TEST(ModelTest, EveryModelGivesAFiniteLossInBothTypes) {
  for (ModelKind kind : {ModelKind::gpt, ModelKind::resnet, ModelKind::mlp}) {
    ModelOptions o;
    o.kind = kind;
    o.hidden = 32;
    o.depth = 8;
    o.image = 16;
    const auto model = make_model(o, at::kFloat);
    const at::Tensor loss = forward(*model, model->batch(RandomStream(1, 1), 2));
    EXPECT_EQ(loss.dim(), 0);
    EXPECT_TRUE(std::isfinite(loss.item<float>()));
  }
}

TEST(ModelTest, ABatchDependsOnItsStreamAlone) {
  const auto model = make_model(ModelOptions(), at::kFloat);
  const Batch a = model->batch(RandomStream(1, 1), 2), b = model->batch(RandomStream(1, 1), 2);
  EXPECT_TRUE(a.input.equal(b.input));
  EXPECT_TRUE(a.target.equal(b.target));
  EXPECT_FALSE(a.input.equal(model->batch(RandomStream(1, 2), 2).input));
  // The target is the next token.
  EXPECT_EQ(a.input[0][1].item<int64_t>(), a.target[0].item<int64_t>());
}

TEST(FlopsTest, TheGptMatchesTheAnalyticCount) {
  const ModelOptions o;
  const auto model = make_model(o, at::kFloat);
  const Batch batch = model->batch(RandomStream(1, 1), 2);
  const FlopsCounter counter;
  const at::Tensor loss = forward(*model, batch);
  const int64_t tokens = 2 * o.seq;
  const int64_t block = 12 * o.hidden * o.hidden + 2 * o.seq * o.hidden;  // projections; scores and mixing
  const auto expected = static_cast<double>(2 * tokens * (o.layers * block + o.vocab * o.hidden));
  EXPECT_EQ(counter.flops(), expected);
  loss.backward();
  EXPECT_EQ(counter.flops(), 3 * expected);
}

TEST(FlopsTest, ConvolutionsCountOnceForwardAndTwiceBackward) {
  ModelOptions o = resnet(8);
  o.image = 16;
  const auto model = make_model(o, at::kFloat);
  const Batch batch = model->batch(RandomStream(1, 1), 1);
  const FlopsCounter counter;
  const at::Tensor loss = forward(*model, batch);
  const double stem = 2.0 * 16 * 16 * 16 * 27;
  const double forward_flops = counter.flops();
  const double first = 2.0 * 256 * 16 * 144 * 2;
  const double second = 2.0 * 64 * 32 * (144 + 288 + 16), third = 2.0 * 16 * 64 * (288 + 576 + 32);
  EXPECT_EQ(forward_flops, stem + first + second + third + 2 * 64 * 10);
  loss.backward();
  // The image needs no gradient.
  EXPECT_EQ(counter.flops(), 3 * forward_flops - stem);
}

}  // namespace
}  // namespace dsat::trainer
