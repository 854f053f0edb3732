// Recomputation of activations (Chen et al., 2016) as one node of the autograd graph: forward runs without a graph,
// backward runs the function again with one and sends the gradients through it. Random generators are wound back for
// the second run.
#include "dsat/trainer/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>
#include <optional>
#include <utility>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

using torch::autograd::variable_list;
using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// The states of LibTorch's default generators, the host's and that of a CUDA device. The host's state is kept outside
// of tensors, because on the CPU a tensor counts as memory of the device.
class GeneratorStates {
 public:
  static GeneratorStates current(at::Device device) {
    GeneratorStates state;
    if (device.is_cuda()) state.of_device_ = {device, at::globalContext().defaultGenerator(device).get_state()};
    const std::lock_guard<std::mutex> lock(generator().mutex_);
    state.engine_ = generator().engine();
    state.next_float_ = generator().next_float_normal_sample();
    state.next_double_ = generator().next_double_normal_sample();
    return state;
  }
  void restore() const {
    if (of_device_) {
      at::Generator generator = at::globalContext().defaultGenerator(of_device_->first);
      generator.set_state(of_device_->second);
    }
    const std::lock_guard<std::mutex> lock(generator().mutex_);
    generator().set_engine(engine_);
    generator().set_next_float_normal_sample(next_float_);
    generator().set_next_double_normal_sample(next_double_);
  }

 private:
  static at::CPUGeneratorImpl& generator() {
    return *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  }
  at::mt19937 engine_;
  c10::optional<float> next_float_;
  c10::optional<double> next_double_;
  std::optional<std::pair<at::Device, at::Tensor>> of_device_;
};

// Stands in the graph for all operations of the function. Parameters that it uses are no inputs of the node: the inner
// backward accumulates their gradients directly.
struct Recompute : torch::autograd::Node {
  Function function;
  variable_list inputs;
  GeneratorStates generators;

  variable_list apply(variable_list&& gradients) override {
    if (!function) {
      throw Error(
          "backward() for the second time through a part that is recomputed: its inputs are gone after the first");
    }
    // Emptied first: what this backward needs is freed with its own variables, not with the graph.
    const variable_list kept = std::exchange(inputs, {});
    const Function compute = std::exchange(function, nullptr);
    variable_list leaves;
    for (size_t i = 0; i < kept.size(); ++i) {
      leaves.push_back(kept[i].detach().set_requires_grad(next_edge(i).is_valid()));
    }
    // What backward draws itself must not depend on whether a part was recomputed.
    const GeneratorStates now = GeneratorStates::current(gradients.front().device());
    {
      const c10::AutoGradMode with_graph(true);
      generators.restore();
      const at::Tensor output = compute(leaves);
      now.restore();
      // Frozen parameters over the batch itself, or none at all: nothing here wants a gradient.
      if (output.requires_grad()) torch::autograd::backward({output}, {gradients.front()});
    }
    variable_list results;
    for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
    return results;
  }
  void release_variables() override {
    inputs.clear();
    function = nullptr;
  }
};

}  // namespace

at::Tensor recompute(const Function& function, const std::vector<at::Tensor>& inputs) {
  if (!c10::GradMode::is_enabled()) return function(inputs);  // no backward will come
  const auto node = std::make_shared<Recompute>();
  node->function = function;
  if (!inputs.empty()) node->generators = GeneratorStates::current(inputs.front().device());
  // Detached: the node, not the kept tensor, leads on to what computed the input.
  for (const at::Tensor& input : inputs) {
    node->inputs.push_back(input.detach());
    node->add_next_edge(torch::autograd::impl::gradient_edge(input));
  }
  at::Tensor output;
  {
    // Without a graph the activations inside are freed as the function goes on: that is the saving.
    const c10::AutoGradMode without_graph(false);
    output = function(inputs).detach();
  }
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace dsat::trainer
