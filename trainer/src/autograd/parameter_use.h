// The parameter that an operation has read last: where in a model a failure is.
//
// A thread-local at::RecordFunction callback sees the inputs of every operation between begin() and end(). Ownership:
// borrows the layout and the leaves. Threading: the compute thread; one at a time records. Errors: none.
#ifndef DSAT_TRAINER_AUTOGRAD_PARAMETER_USE_H_
#define DSAT_TRAINER_AUTOGRAD_PARAMETER_USE_H_

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "layout/layout.h"

namespace dsat::trainer {

class ParameterUse {
 public:
  ParameterUse(const Layout& layout, const std::vector<std::vector<at::Tensor>>& leaves);
  ~ParameterUse() { end(); }
  ParameterUse(const ParameterUse&) = delete;
  ParameterUse& operator=(const ParameterUse&) = delete;

  void begin();
  void end();
  // "in or after layer fc (fc.weight: [4, 8])"
  std::string where() const;

 private:
  static std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction& function);

  std::unordered_map<const c10::TensorImpl*, const ParameterSlot*> slots_;
  const ParameterSlot* last_ = nullptr;
  at::CallbackHandle callback_ = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_AUTOGRAD_PARAMETER_USE_H_
