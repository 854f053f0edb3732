// Random inputs and classes come from the number of the micro batch; a user's own from a loader over the file's
// tensors, of which the last one is the target unless the loss is the mean of the output.
#include "program/script_task.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "model/model.h"
#include "weights/weight_reader.h"
#include "zero/zero_context.h"

namespace dsat::trainer {
namespace {

// The tensors of --data, all with the samples in dimension 0.
Tensors tensors_of(const std::string& file) {
  const std::unique_ptr<WeightReader> reader = open_weight_reader(file);
  Tensors tensors;
  for (const WeightSpec& spec : reader->specs()) {
    if (spec.shape.empty() || spec.shape[0] == 0 || spec.shape[0] != reader->specs().front().shape[0]) {
      throw Error(fmt::format("--data {}: tensor {} has the shape [{}]; all need the same number of samples first",
                              file, spec.name, fmt::join(spec.shape, ", ")));
    }
    tensors.push_back(reader->read(spec.name));
  }
  if (tensors.empty()) throw Error(fmt::format("--data {} has no tensors: torch.save((inputs, targets), FILE)", file));
  return tensors;
}

void require_classes(const at::Tensor& output) {
  if (output.dim() >= 2 && output.size(-1) >= 2) return;
  throw Error(
      fmt::format("the loss cross-entropy needs an output of (samples, ..., classes) with two classes or more; this "
                  "one is ({}): add --loss mean",
                  fmt::join(output.sizes(), ", ")));
}

at::Tensor scores_of(const at::Tensor& output) { return output.reshape({-1, output.size(-1)}).to(at::kFloat); }

}  // namespace

ScriptTask::ScriptTask(const Options& options, const Settings& settings, const World& world)
    : loss_(options.loss),
      micro_batch_(settings.batch.micro_batch),
      dtype_(dtype_of(settings)),
      device_(world.device()),
      seed_(world.seed()) {
  if (options.data.empty()) {
    specs_ = parse_input_spec(options.input_spec);
    return;
  }
  Tensors tensors = tensors_of(options.data);
  tensors_ = tensors.size();
  if (tensors_ == 1 && loss_ != "mean") {
    throw Error(fmt::format("--data {} has one tensor: the target is missing, or --loss mean", options.data));
  }
  loader_ = std::make_unique<DataLoader>(std::make_shared<TensorDataset>(std::move(tensors)), micro_batch_,
                                         /*shuffle=*/true);
}

size_t ScriptTask::num_inputs() const { return !loader_ ? specs_.size() : loss_ == "mean" ? tensors_ : tensors_ - 1; }

ScriptBatch ScriptTask::batch(int64_t number, int64_t rank, int64_t count) {
  if (!loader_) return random_batch(number * count + rank);
  if (iterator_.taken() != number || number == 0) {
    iterator_ = BatchIterator(*loader_, {rank, count, seed_}, /*repeat=*/true, number);
  }
  ScriptBatch batch{iterator_.next(), {}};
  for (at::Tensor& tensor : batch.inputs) tensor = tensor.to(device_);
  if (loss_ != "mean") {
    batch.target = batch.inputs.back();
    batch.inputs.pop_back();
  }
  for (at::Tensor& input : batch.inputs) {
    if (input.is_floating_point()) input = input.to(dtype_);
  }
  return batch;
}

ScriptBatch ScriptTask::random_batch(int64_t number) const {
  ScriptBatch batch;
  for (size_t i = 0; i < specs_.size(); ++i) {
    batch.inputs.push_back(random_input(RandomStream(stream(number).bits(0), i), specs_[i]));
  }
  batch.target = at::scalar_tensor(number, at::kLong);
  return batch;
}

at::Tensor ScriptTask::random_input(const RandomStream& stream, const InputSpec& spec) const {
  std::vector<int64_t> shape = {micro_batch_};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  if (spec.limit > 0) return random_integers(stream, shape, spec.limit).to(device_);
  return random_values(stream, shape, dtype_).to(device_);
}

// The output's last dimension has the scores.
at::Tensor ScriptTask::random_classes(const at::Tensor& output, const at::Tensor& number) const {
  const RandomStream classes(stream(number.item<int64_t>()).bits(0), specs_.size());
  return random_integers(classes, {output.numel() / output.size(-1)}, output.size(-1)).to(output.device());
}

// Without --loss the shape of the output decides, or the type of the target; the count of the output's numbers depends
// on the micro batch.
at::Tensor ScriptTask::loss(const at::Tensor& output, const at::Tensor& target) const {
  const bool is_own = loader_ != nullptr;
  const std::string by_shape = output.dim() == 0 ? "mean" : "cross-entropy";
  const std::string by_type = is_own && target.is_floating_point() ? "mse" : "cross-entropy";
  const std::string kind = !loss_.empty() ? loss_ : is_own ? by_type : by_shape;
  if (kind == "mean") return output.to(at::kFloat).mean();
  if (kind == "mse") return at::mse_loss(output.to(at::kFloat), target.view_as(output).to(at::kFloat));
  require_classes(output);
  const at::Tensor classes = is_own ? target.reshape({-1}).to(at::kLong) : random_classes(output, target);
  return at::cross_entropy_loss(scores_of(output), classes);
}

}  // namespace dsat::trainer
