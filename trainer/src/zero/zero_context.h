// What every part of the ZeRO engine is made with.
#ifndef DSAT_TRAINER_ZERO_ZERO_CONTEXT_H_
#define DSAT_TRAINER_ZERO_ZERO_CONTEXT_H_

#include <ATen/core/Tensor.h>

#include "dsat/trainer/comm.h"
#include "layout/layout.h"
#include "settings/settings.h"

namespace dsat::trainer {

class Lane;

// Borrowed: outlives the engine's parts.
struct ZeroContext {
  const Settings& settings;
  const Layout& layout;
  const Partition& partition;  // of what this stage shards
  Comm& comm;                  // the engine's own group
  Lane& lane;                  // of that group: what may run beside the computation
  at::Device device;           // of parameters and gradients, and of what is not offloaded
  at::ScalarType dtype;        // of parameters and gradients: dtype_of(settings)
  uint64_t seed;

  // Of tensors of this engine's own, of `type`.
  at::TensorOptions options(at::ScalarType type) const { return at::TensorOptions().dtype(type).device(device); }
  at::TensorOptions options() const { return options(dtype); }
};

// What is computed in.
inline at::ScalarType dtype_of(const Settings& settings) {
  return settings.bf16 ? at::kBFloat16 : settings.fp16 ? at::kHalf : at::kFloat;
}

// Calls call(data) with the data of a tensor of the host, in fp32 or bf16, as float* or BFloat16*.
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
