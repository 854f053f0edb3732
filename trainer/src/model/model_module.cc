// Runs the layers one after the other, in one piece or in recomputed segments; where activations are measured, one by
// one with the memory in use before and after each.
#include "model/model_module.h"

#include <algorithm>
#include <utility>

#include "device/device_memory.h"
#include "device/scratch_memory.h"
#include "dsat/trainer/recompute.h"
#include "model/layer_chain.h"

namespace dsat::trainer {
namespace {

// The working memory of a layer: what its operations need beyond what is `held` before or after it. Intermediate
// results of forward that are not kept correspond, in backward, to the gradients of the output (a branch's and a
// shortcut's), which the cost model counts by themselves: two outputs are taken off for them. Scratch memory has no
// such match.
double working_bytes(const ScratchMemoryWatch& measured, double held, double output_bytes) {
  const auto scratch = static_cast<double>(measured.highest_with_scratch_bytes());
  return std::max({0.0, scratch - held, static_cast<double>(measured.highest_bytes()) - held - 2 * output_bytes});
}

}  // namespace

ModelModule::ModelModule(std::unique_ptr<Model> model, Segments segments)
    : model_(std::move(model)), segments_(std::move(segments)) {
  for (const auto& layer : model_->layers()) {
    parameters_.push_back(add_layer(*layer, parameters_.size(), parts_));
  }
  parts_.recomputed_segments = segments_.size();
  parts_.activation_peaks = [this] { return activation_peaks(); };
}

at::Tensor ModelModule::run(const Segment& segment, at::Tensor x) const {
  for (size_t i = segment.begin; i < segment.end; ++i) x = model_->layers()[i]->forward(x, parameters_[i]);
  return x;
}

void ModelModule::measure_activations(Segments segments) { planned_segments_ = std::move(segments); }

std::optional<ActivationPeaks> ModelModule::activation_peaks() const {
  if (layer_activations_.empty()) return std::nullopt;
  std::vector<size_t> ends;
  for (const Segment& segment : planned_segments_) ends.push_back(segment.end);
  return ActivationPeaks{cost::activation_peak_bytes(layer_activations_),
                         cost::activation_peak_bytes(layer_activations_, ends)};
}

// In backward a parameter's gradient exists before it is accumulated: the cost model adds the largest one.
double ModelModule::largest_parameter_bytes(size_t layer) const {
  double largest = 0;
  const std::vector<ParameterSpec> specs = model_->layers()[layer]->parameters();
  for (size_t k = 0; k < specs.size(); ++k) {
    const int64_t bytes = specs[k].numel() * static_cast<int64_t>(parameters_[layer][k].element_size());
    largest = std::max(largest, static_cast<double>(bytes));
  }
  return largest;
}

at::Tensor ModelModule::measured_forward(const Batch& batch) const {
  layer_activations_.clear();
  // One layer: what it leaves in memory, its output, and its working memory at the highest moment.
  const auto measured = [this](double largest_parameter_bytes, const auto& compute) {
    const auto before = static_cast<double>(memory_in_use());
    const ScratchMemoryWatch scratch;
    at::Tensor output = compute();
    const auto after = static_cast<double>(memory_in_use());
    const auto output_bytes = static_cast<double>(output.nbytes());
    layer_activations_.push_back({after - before, output_bytes,
                                  working_bytes(scratch, std::max(before, after), output_bytes),
                                  largest_parameter_bytes});
    return output;
  };
  at::Tensor x = batch.input;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    x = measured(largest_parameter_bytes(i), [&] { return run({i, i + 1}, x); });
  }
  // The loss counts as one more layer, without parameters.
  return measured(0, [&] { return model_->loss(x, batch.target); });
}

at::Tensor ModelModule::forward(const Batch& batch) const {
  if (!planned_segments_.empty()) return measured_forward(batch);
  at::Tensor x = batch.input;
  if (segments_.empty()) x = run({0, parameters_.size()}, std::move(x));
  for (const Segment& segment : segments_) {
    x = recompute([this, segment](const std::vector<at::Tensor>& in) { return run(segment, in.front()); }, {x});
  }
  return model_->loss(x, batch.target);
}

std::shared_ptr<ModelParts> parts_of(ModelModule& module) { return std::make_shared<ModelParts>(module.parts()); }

}  // namespace dsat::trainer
