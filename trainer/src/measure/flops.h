// Counts the floating-point operations of what runs while it lives: matrix products and convolutions, forward and
// backward, two per multiply-add; everything else is left out, as is usual.
//
// As DeepSpeed's FLOPS profiler counts. It slows small models by a third, so the step that it counts should not be
// timed. Threading: counts the operations of all threads; one counter at a time in a process. Errors: none.
#ifndef DSAT_TRAINER_MEASURE_FLOPS_H_
#define DSAT_TRAINER_MEASURE_FLOPS_H_

#include <cstdint>

namespace dsat::trainer {

class FlopsCounter {
 public:
  FlopsCounter();
  ~FlopsCounter();
  FlopsCounter(const FlopsCounter&) = delete;
  FlopsCounter& operator=(const FlopsCounter&) = delete;

  double flops() const;  // since its begin

 private:
  uint64_t handle_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MEASURE_FLOPS_H_
