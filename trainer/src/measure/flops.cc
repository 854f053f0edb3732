// A global callback of at::RecordFunction sees each operator's name and inputs, whose shapes say how much it computes.
// It counts matrix products and convolutions by their names in ATen, where all layers end.
#include "measure/flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

namespace dsat::trainer {
namespace {

std::atomic<int64_t>& total() {
  static std::atomic<int64_t> flops{0};
  return flops;
}

// (n, k) x (k, m), or batches of it: each of n * m outputs takes k multiply-adds.
int64_t product(const at::Tensor& a, const at::Tensor& b) { return 2 * a.numel() * b.size(-1); }

// Every output element is a sum over one filter: weight is (out, in, kernel...). Transposed, every input element is a
// factor of one filter: weight is (in, out, kernel...).
int64_t convolution(int64_t elements, const at::Tensor& weight) {
  return 2 * elements * (weight.numel() / weight.size(0));
}

// aten::_convolution(input, weight, bias, stride, padding, dilation, transposed, ...)
int64_t convolution_forward(c10::ArrayRef<const c10::IValue> inputs) {
  const at::Tensor& x = inputs[0].toTensor();
  const at::Tensor& weight = inputs[1].toTensor();
  if (inputs[6].toBool()) return convolution(x.numel(), weight);
  const auto stride = inputs[3].toIntVector(), padding = inputs[4].toIntVector(), dilation = inputs[5].toIntVector();
  // A list of one number stands for all dimensions.
  const auto along = [](const std::vector<int64_t>& list, int64_t i) {
    return list[std::min(static_cast<size_t>(i - 2), list.size() - 1)];
  };
  // The output's size along each dimension, as torch.nn.Conv2d documents it.
  int64_t elements = x.size(0) * weight.size(0);
  for (int64_t i = 2; i < x.dim(); ++i) {
    const int64_t reach = along(dilation, i) * (weight.size(i) - 1) + 1;
    elements *= (x.size(i) + 2 * along(padding, i) - reach) / along(stride, i) + 1;
  }
  return convolution(elements, weight);
}

// aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, ...,
// output_mask): the gradients of input and weight cost as much as forward each, if they are asked for.
int64_t convolution_backward(c10::ArrayRef<const c10::IValue> inputs) {
  const auto wanted = inputs[10].toBoolList();
  const int64_t elements = inputs[inputs[7].toBool() ? 1 : 0].toTensor().numel();
  return (int64_t{wanted[0]} + int64_t{wanted[1]}) * convolution(elements, inputs[2].toTensor());
}

// Only operators that no other counted operator calls, so nothing counts twice.
int64_t flops_of(const char* name, c10::ArrayRef<const c10::IValue> inputs) {
  if (std::strncmp(name, "aten::", 6) != 0) return 0;
  const auto is = [&](const char* op) { return std::strcmp(name + 6, op) == 0; };
  if (is("mm") || is("bmm")) return product(inputs[0].toTensor(), inputs[1].toTensor());
  if (is("addmm") || is("baddbmm")) return product(inputs[1].toTensor(), inputs[2].toTensor());
  // All convolutions end in it, and a traced module calls it itself. An older one of that name, with one input less,
  // calls it too.
  if (is("_convolution") && inputs.size() == 13) return convolution_forward(inputs);
  if (is("convolution_backward")) return convolution_backward(inputs);
  return 0;
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& function) {
  total() += flops_of(function.name(), function.inputs());
  return nullptr;
}

}  // namespace

FlopsCounter::FlopsCounter() {
  total() = 0;
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(&on_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

FlopsCounter::~FlopsCounter() { at::removeCallback(handle_); }

double FlopsCounter::flops() const { return static_cast<double>(total().load()); }

}  // namespace dsat::trainer
