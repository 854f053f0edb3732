#include "model/model_module.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "device/device_memory.h"
#include "device/scratch_memory.h"
#include "dsat/trainer/checkpoint.h"
#include "zero/model_parts.h"

namespace dsat::trainer {
namespace {

// Beyond what is held. What forward passes from one operation to another and keeps no longer has its match in backward,
// the gradients of the output, which are counted by themselves: the branch's and the shortcut's.
double working_bytes(const ScratchWatch& seen, double held, double output_bytes) {
  const auto scratch = static_cast<double>(seen.highest_with_scratch_bytes());
  return std::max({0.0, scratch - held, static_cast<double>(seen.highest_bytes()) - held - 2 * output_bytes});
}

}  // namespace

Chain::Chain(std::unique_ptr<Model> model, Segments segments)
    : model_(std::move(model)), segments_(std::move(segments)) {
  for (const auto& layer : model_->layers()) {
    parameters_.emplace_back();
    for (size_t i = 0; i < layer->parameters().size(); ++i) {
      parameters_.back().push_back(at::empty({0}, at::TensorOptions().dtype(at::kFloat)).set_requires_grad(true));
    }
  }
}

at::Tensor Chain::run(const Segment& segment, at::Tensor x) const {
  for (size_t i = segment.begin; i < segment.end; ++i) x = model_->layers()[i]->forward(x, parameters_[i]);
  return x;
}

void Chain::watch_activations(Segments segments) { foretold_ = std::move(segments); }

std::optional<ActivationPeaks> Chain::activation_peaks() const {
  if (seen_.empty()) return std::nullopt;
  std::vector<size_t> ends;
  for (const Segment& segment : foretold_) ends.push_back(segment.end);
  return ActivationPeaks{cost::activation_peak_bytes(seen_), cost::activation_peak_bytes(seen_, ends)};
}

double Chain::largest_parameter_bytes(size_t layer) const {
  double largest = 0;
  const std::vector<ParameterSpec> specs = model_->layers()[layer]->parameters();
  for (size_t k = 0; k < specs.size(); ++k) {
    const int64_t bytes = specs[k].numel() * static_cast<int64_t>(parameters_[layer][k].element_size());
    largest = std::max(largest, static_cast<double>(bytes));
  }
  return largest;
}

at::Tensor Chain::watched_forward(const Batch& batch) const {
  seen_.clear();
  const auto watched = [this](double largest_parameter_bytes, const auto& compute) {
    const auto before = static_cast<double>(memory_in_use());
    const ScratchWatch scratch;
    at::Tensor output = compute();
    const auto after = static_cast<double>(memory_in_use());
    const auto output_bytes = static_cast<double>(output.nbytes());
    seen_.push_back({after - before, output_bytes, working_bytes(scratch, std::max(before, after), output_bytes),
                     largest_parameter_bytes});
    return output;
  };
  at::Tensor x = batch.input;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    x = watched(largest_parameter_bytes(i), [&] { return run({i, i + 1}, x); });
  }
  return watched(0, [&] { return model_->loss(x, batch.target); });
}

at::Tensor Chain::forward(const Batch& batch) const {
  if (!foretold_.empty()) return watched_forward(batch);
  at::Tensor x = batch.input;
  if (segments_.empty()) x = run({0, parameters_.size()}, std::move(x));
  for (const Segment& segment : segments_) {
    x = checkpoint([this, segment](const std::vector<at::Tensor>& in) { return run(segment, in.front()); }, {x});
  }
  return model_->loss(x, batch.target);
}

std::shared_ptr<ModelParts> parts_of(Chain& chain) {
  auto parts = std::make_shared<ModelParts>();
  for (size_t i = 0; i < chain.parameters().size(); ++i) {
    const std::vector<ParameterSpec> specs = chain.model().layers()[i]->parameters();
    parts->groups.emplace_back();
    for (size_t k = 0; k < specs.size(); ++k) {
      parts->groups.back().push_back({specs[k], chain.parameters()[i][k], /*has_values=*/false});
      std::string& name = parts->groups.back().back().spec.name;
      name = "layer" + std::to_string(i) + "." + name;
    }
  }
  parts->activation_checkpoints = chain.segments().size();
  parts->activation_peaks = [&chain] { return chain.activation_peaks(); };
  return parts;
}

}  // namespace dsat::trainer
