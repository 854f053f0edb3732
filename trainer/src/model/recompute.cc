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

#include "dsat/trainer/checkpoint.h"

namespace dsat::trainer {
namespace {

using torch::autograd::variable_list;
using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Where LibTorch's default generators stand, the host's and that of a CUDA device. The host's is kept outside tensors,
// which would count as memory of a device that the host stands in for.
class RandomState {
 public:
  static RandomState current(at::Device device) {
    RandomState state;
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

// Stands in the graph for all that the function does.
struct Recompute : torch::autograd::Node {
  Function function;
  variable_list inputs;
  RandomState random_state;

  variable_list apply(variable_list&& gradients) override {
    if (!function) throw std::runtime_error("backward through a checkpoint for the second time");
    const variable_list kept = std::exchange(inputs, {});
    const Function compute = std::exchange(function, nullptr);
    variable_list leaves;
    for (size_t i = 0; i < kept.size(); ++i) {
      leaves.push_back(kept[i].detach().set_requires_grad(next_edge(i).is_valid()));
    }
    const RandomState now = RandomState::current(gradients.front().device());
    {
      const c10::AutoGradMode with_graph(true);
      random_state.restore();
      const at::Tensor output = compute(leaves);
      now.restore();
      torch::autograd::backward({output}, {gradients.front()});
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

at::Tensor checkpoint(const Function& function, const std::vector<at::Tensor>& inputs) {
  if (!c10::GradMode::is_enabled()) return function(inputs);
  const auto node = std::make_shared<Recompute>();
  node->function = function;
  if (!inputs.empty()) node->random_state = RandomState::current(inputs.front().device());
  for (const at::Tensor& input : inputs) {
    node->inputs.push_back(input.detach());
    node->add_next_edge(torch::autograd::impl::gradient_edge(input));
  }
  at::Tensor output;
  {
    const c10::AutoGradMode without_graph(false);
    output = function(inputs).detach();
  }
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace dsat::trainer
