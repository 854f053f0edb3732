// What every part of the ZeRO engine is made with.
#ifndef DSAT_TRAINER_ZERO_CONTEXT_H_
#define DSAT_TRAINER_ZERO_CONTEXT_H_

#include <ATen/core/Tensor.h>

#include "dsat/trainer/comm.h"
#include "layout.h"
#include "settings.h"

namespace dsat::trainer {

class Lane;

// Borrowed: outlives the engine's parts.
struct ZeroContext {
  const Settings& settings;
  const Layout& layout;
  const Partition& partition;  // of what this stage shards
  Comm& comm;                  // the engine's own group
  Lane& lane;                  // of that group: what may run beside the computation
  at::ScalarType dtype;        // of parameters and gradients: at::kFloat or at::kBFloat16
  uint64_t seed;
};

// Calls call(data) with the tensor's data as float* or BFloat16*.
template <typename Call>
void with_data(const at::Tensor& tensor, Call call) {
  if (tensor.scalar_type() == at::kBFloat16) {
    call(static_cast<BFloat16*>(tensor.data_ptr()));
  } else {
    call(tensor.data_ptr<float>());
  }
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_CONTEXT_H_
