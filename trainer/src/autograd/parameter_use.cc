// Looks up every tensor among an operation's inputs in a table of the parameters.
#include "autograd/parameter_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dsat::trainer {
namespace {

thread_local ParameterUse* recording = nullptr;

}  // namespace

ParameterUse::ParameterUse(const Layout& layout, const std::vector<std::vector<at::Tensor>>& leaves) {
  for (size_t group = 0; group < leaves.size(); ++group) {
    for (size_t k = 0; k < leaves[group].size(); ++k) {
      slots_[leaves[group][k].unsafeGetTensorImpl()] = &layout.groups()[group].parameters[k];
    }
  }
}

std::unique_ptr<at::ObserverContext> ParameterUse::on_operation(const at::RecordFunction& function) {
  ParameterUse* const self = recording;
  if (self == nullptr) return nullptr;
  for (const c10::IValue& input : function.inputs()) {
    if (!input.isTensor()) continue;
    const auto found = self->slots_.find(input.toTensor().unsafeGetTensorImpl());
    if (found != self->slots_.end()) self->last_ = found->second;
  }
  return nullptr;
}

void ParameterUse::begin() {
  end();
  last_ = nullptr;
  recording = this;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&on_operation).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

void ParameterUse::end() {
  if (callback_ == 0) return;
  at::removeCallback(callback_);
  callback_ = 0;
  recording = nullptr;
}

std::string ParameterUse::where() const {
  if (last_ == nullptr) return "before the first layer with parameters";
  const std::string& name = last_->spec.name;
  const size_t dot = name.rfind('.');
  return fmt::format("in or after layer {} ({}: [{}])", dot == std::string::npos ? name : name.substr(0, dot), name,
                     fmt::join(last_->spec.shape, ", "));
}

}  // namespace dsat::trainer
