// Cuts the autograd graph at the stage's borders: the input is a leaf, the output is sent on without its graph, and
// backward starts from the gradient that comes back.
#include "pipeline/pipeline_stage.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "dsat/trainer/recompute.h"

namespace dsat::trainer {

PipelineStage::PipelineStage(const LayerChain& chain, const Settings& settings, Comm& data_parallel, StagePlan plan,
                             SquaredNorm squared_norm)
    : chain_(chain),
      settings_(settings),
      plan_(std::move(plan)),
      layers_(chain.build(plan_.layers)),
      engine_(layers_.parts, settings, data_parallel, plan_.device, plan_.seed, std::move(squared_norm)) {}

at::Tensor PipelineStage::run(const Segment& segment, at::Tensor x) const {
  for (size_t i = segment.begin; i < segment.end; ++i) x = layers_.forward[i](x);
  return x;
}

at::Tensor PipelineStage::run(at::Tensor x) const {
  // The first stage's input comes as the batch has it; whole numbers (tokens) stay whole.
  if (x.is_floating_point()) x = x.to(engine_.dtype());
  if (plan_.recomputed.empty()) return run({0, layers_.forward.size()}, std::move(x));
  for (const Segment& segment : plan_.recomputed) {
    x = recompute([this, segment](const std::vector<at::Tensor>& in) { return run(segment, in.front()); }, {x});
  }
  return x;
}

at::Tensor PipelineStage::forward(int64_t micro_batch, at::Tensor input, const at::Tensor& target) {
  HeldMicroBatch held;
  // A leaf: backward leaves the gradient for the stage before in its grad().
  if (!plan_.is_first) {
    input.set_requires_grad(true);
    held.input = input;
  }
  held.output = run(std::move(input));
  if (plan_.is_last) {
    held.output = chain_.loss(held.output, target);
    if (held.output.scalar_type() == at::kHalf) held.output = held.output.to(at::kFloat);  // holds the loss scale
  }
  // Shares the output's memory, but not its graph.
  const at::Tensor result = held.output.detach();
  held_[micro_batch] = std::move(held);
  return result;
}

at::Tensor PipelineStage::backward(int64_t micro_batch, const at::Tensor& gradient) {
  HeldMicroBatch held = std::move(held_.at(micro_batch));
  held_.erase(micro_batch);
  // The output of a first stage whose layers have no parameters needs no gradient: there is no backward pass.
  if (held.output.requires_grad()) {
    const at::Tensor output = std::exchange(held.output, {});
    engine_.backward_from(output, plan_.is_last ? loss_gradient(output) : gradient);
  }
  if (plan_.is_first) return {};
  // The stage before waits for one, also where the output does not depend on the input.
  const at::Tensor of_input = held.input.grad();
  return of_input.defined() ? of_input : at::zeros_like(held.input);
}

// The share of a micro batch in the mean over the optimizer step, with the loss scale.
at::Tensor PipelineStage::loss_gradient(const at::Tensor& loss) {
  const double share = engine_.optimizer().loss_scale() / static_cast<double>(settings_.batch.accumulation);
  return at::full(loss.sizes(), share, loss.options());
}

void PipelineStage::step() {
  engine_.sum_gradients();
  engine_.step();
}

void PipelineStage::abandon_step() {
  held_.clear();
  engine_.abandon_step();
}

at::Tensor PipelineStage::evaluate(at::Tensor input, const at::Tensor& target) const {
  const c10::AutoGradMode no_graph(false);
  const at::Tensor output = run(std::move(input));
  return plan_.is_last ? chain_.loss(output, target) : output;
}

}  // namespace dsat::trainer
