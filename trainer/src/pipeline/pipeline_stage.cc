#include "pipeline/pipeline_stage.h"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "dsat/trainer/checkpoint.h"

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
  if (x.is_floating_point()) x = x.to(engine_.dtype());
  if (plan_.recomputed.empty()) return run({0, layers_.forward.size()}, std::move(x));
  for (const Segment& segment : plan_.recomputed) {
    x = checkpoint([this, segment](const std::vector<at::Tensor>& in) { return run(segment, in.front()); }, {x});
  }
  return x;
}

at::Tensor PipelineStage::forward(int64_t micro_batch, at::Tensor input, const at::Tensor& target) {
  Kept kept;
  if (!plan_.is_first) {
    input.set_requires_grad(true);
    kept.input = input;
  }
  kept.output = run(std::move(input));
  if (plan_.is_last) {
    kept.output = chain_.loss(kept.output, target);
    if (kept.output.scalar_type() == at::kHalf) kept.output = kept.output.to(at::kFloat);  // holds the loss scale
  }
  const at::Tensor result = kept.output.detach();
  kept_[micro_batch] = std::move(kept);
  return result;
}

at::Tensor PipelineStage::backward(int64_t micro_batch, const at::Tensor& gradient) {
  Kept kept = std::move(kept_.at(micro_batch));
  kept_.erase(micro_batch);
  // A first stage of layers without parameters has nothing to go back to.
  if (kept.output.requires_grad()) {
    const at::Tensor output = std::exchange(kept.output, {});
    engine_.backward_from(output, plan_.is_last ? start_gradient(output) : gradient);
  }
  return plan_.is_first ? at::Tensor() : kept.input.grad();
}

at::Tensor PipelineStage::start_gradient(const at::Tensor& loss) {
  const double share = engine_.optimizer().loss_scale() / static_cast<double>(settings_.batch.accumulation);
  return at::full({}, share, loss.options());
}

void PipelineStage::step() {
  engine_.sum_gradients();
  engine_.step();
}

void PipelineStage::abandon_step() {
  kept_.clear();
  engine_.abandon_step();
}

at::Tensor PipelineStage::evaluate(at::Tensor input, const at::Tensor& target) const {
  const c10::AutoGradMode no_graph(false);
  const at::Tensor output = run(std::move(input));
  return plan_.is_last ? chain_.loss(output, target) : output;
}

}  // namespace dsat::trainer
