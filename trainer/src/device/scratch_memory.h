// Notes how much memory operations use at most, and those alone that hold scratch of their own, like the columns of a
// convolution.
//
// Threading: operations of the thread that made it; one at a time. It uses the memory window (device_memory.h).
#ifndef DSAT_TRAINER_DEVICE_SCRATCH_MEMORY_H_
#define DSAT_TRAINER_DEVICE_SCRATCH_MEMORY_H_

#include <ATen/record_function.h>

#include <cstdint>

namespace dsat::trainer {

class ScratchWatch {
 public:
  ScratchWatch();
  ~ScratchWatch();
  ScratchWatch(const ScratchWatch&) = delete;
  ScratchWatch& operator=(const ScratchWatch&) = delete;

  // The most memory that was in use, whatever for, inside an operation; 0: there was none.
  uint64_t highest_bytes() const;
  // Of the operations that took more than their results.
  uint64_t highest_with_scratch_bytes() const;

 private:
  at::CallbackHandle callback_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_SCRATCH_MEMORY_H_
