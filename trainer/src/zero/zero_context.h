// What every part of the ZeRO engine is made with: settings, layout, groups and types.
//
// Ownership: everything is borrowed from the engine, which outlives its parts. Threading: the compute thread; only what
// CommThread runs is on the communication thread. Errors: none.
#ifndef DSAT_TRAINER_ZERO_ZERO_CONTEXT_H_
#define DSAT_TRAINER_ZERO_ZERO_CONTEXT_H_

#include <ATen/core/Tensor.h>

#include "dsat/trainer/comm.h"
#include "layout/layout.h"
#include "settings/settings.h"

namespace dsat::trainer {

class CommThread;

struct ZeroContext {
  const Settings& settings;
  const Layout& layout;
  const Partition& partition;  // which rank owns which elements, at this stage
  Comm& comm;                  // the engine's own group
  CommThread& comm_thread;     // of that group: for collectives beside the computation
  at::Device device;           // of parameters and gradients, and of what is not offloaded
  at::ScalarType dtype;        // of parameters and gradients: dtype_of(settings)
  uint64_t seed;

  // For tensors that the engine makes on its device, of `type` or of the parameters' type.
  at::TensorOptions options(at::ScalarType type) const { return at::TensorOptions().dtype(type).device(device); }
  at::TensorOptions options() const { return options(dtype); }
};

// The type that the model is computed in.
inline at::ScalarType dtype_of(const Settings& settings) {
  return settings.bf16 ? at::kBFloat16 : settings.fp16 ? at::kHalf : at::kFloat;
}

// Calls call(data) with the data of a host tensor: float* for fp32, BFloat16* for bf16. No other type has host loops.
template <typename Call>
void with_data(const at::Tensor& tensor, Call call) {
  if (tensor.scalar_type() == at::kBFloat16) {
    call(static_cast<BFloat16*>(tensor.data_ptr()));
  } else {
    call(tensor.data_ptr<float>());
  }
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_ZERO_CONTEXT_H_
