// Counts the floating-point operations of what runs while it lives: matrix products and convolutions, forward and
// backward, two per multiply-add; everything else is left out, as is usual.
//
// Slows small models by a third: profile one step of its own. Threading: one counter at a time in a process.
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

  double flops() const;

 private:
  uint64_t handle_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MEASURE_FLOPS_H_
