// The sizes of an arm by the formulas.
#include "cost/posterior/places.h"

namespace dsat::cost {

MemoryArm arm_of(const ModelSize& size, const Setup& setup) {
  MemoryArm arm;
  arm.stage = setup.stage;
  arm.setup = setup;
  arm.setup.micro_batch = 1;
  arm.state_bytes = model_state_bytes(size, setup);
  Setup leanest = setup;
  leanest.optimizer = Optimizer::sgd;
  arm.optimizer_bytes = arm.state_bytes - model_state_bytes(size, leanest);
  arm.buffer_bytes = buffer_bytes(size, setup);
  arm.optional_buffer_bytes = optional_buffer_bytes(size, setup);
  return arm;
}

}  // namespace dsat::cost
