#include "engine.h"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "initial.h"

namespace dsat::trainer {
namespace {

Layout layout_of(const Model& model, int world_size) {
  std::vector<std::vector<ParameterSpec>> layers;
  for (const auto& layer : model.layers()) layers.push_back(layer->parameters());
  return Layout(layers, world_size);
}

Partition partition_of(const Layout& layout, int stage, int rank) {
  if (stage == 0) return Partition::replicated(layout, rank);
  return stage == 3 ? Partition::by_layer(layout) : Partition::contiguous(layout);
}

}  // namespace

Engine::Engine(const Model& model, const Settings& settings, Comm& comm, uint64_t seed, Segments segments)
    : model_(model),
      settings_(settings),
      comm_(comm),
      layout_(layout_of(model, comm.size())),
      partition_(partition_of(layout_, settings.stage, comm.rank())),
      context_{settings_, layout_, partition_, comm_, settings.bf16 ? at::kBFloat16 : at::kFloat, seed},
      parameters_(make_parameters(context_)),
      gradients_(make_gradients(context_, *parameters_, [this](size_t layer) { parameters_->release(layer); })),
      optimizer_(context_, parameters_->shard(),
                 [this](float* master) { fill_initial(layout_, partition_, comm_.rank(), context_.seed, master); }),
      segments_(std::move(segments)) {}

void Engine::begin_step() {
  parameters_->begin_step();
  gradients_->begin_step();
}

at::Tensor Engine::run(const Segment& segment, at::Tensor x) {
  for (size_t i = segment.begin; i < segment.end; ++i) {
    parameters_->gather(i);
    x = model_.layers()[i]->forward(x, parameters_->layers()[i]);
    parameters_->release(i);
    // Backward enters a layer with the gradient of its output; gradients_ tells when it has left it.
    if (parameters_->partitioned() && x.requires_grad()) {
      x.register_hook([this, i](const at::Tensor&) { parameters_->gather(i); });
    }
  }
  return x;
}

at::Tensor Engine::forward(const Batch& batch) {
  const bool recomputes = !segments_.empty();
  const at::Tensor output =
      recomputes ? forward_keeping_inputs(batch.input) : run({0, model_.layers().size()}, batch.input);
  return model_.loss(output, batch.target);
}

// Without a graph nothing but the segments' inputs outlives the layer that made it.
at::Tensor Engine::forward_keeping_inputs(at::Tensor x) {
  inputs_.clear();
  {
    const c10::AutoGradMode no_graph(false);
    for (const Segment& segment : segments_) {
      inputs_.push_back(x);
      x = run(segment, std::move(x));
    }
  }
  output_ = x.detach().set_requires_grad(true);
  return output_;
}

void Engine::backward(const at::Tensor& loss, bool is_last) {
  const double share = optimizer_.loss_scale() / static_cast<double>(settings_.batch.accumulation);
  loss.backward(at::full({}, share, loss.options()));
  if (!segments_.empty()) backward_recomputing();
  gradients_->after_micro_step(is_last);
}

// From the last segment to the first: forward once more, now with a graph, and through it with the gradient of its
// output. Parameters are gathered and released as in any forward and backward. No layer draws random numbers, so the
// second forward is the first one to the last bit.
void Engine::backward_recomputing() {
  at::Tensor gradient = output_.grad();
  output_.reset();
  for (size_t i = segments_.size(); i-- > 0;) {
    at::Tensor input = std::move(inputs_[i]);
    inputs_.pop_back();
    // The model's own input, token numbers or images, needs no gradient.
    if (i > 0) input = input.detach().set_requires_grad(true);
    run(segments_[i], input).backward(gradient);
    gradient = input.grad();
  }
}

void Engine::step() {
  if (optimizer_.step(gradients_->shard())) parameters_->publish();
  abandon_step();
}

void Engine::abandon_step() {
  gradients_->end_step();
  parameters_->end_step();
}

}  // namespace dsat::trainer
