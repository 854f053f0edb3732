// Measures the most memory in use inside operations: of all operations, and of those that hold scratch memory of their
// own, like the columns of a convolution.
//
// An operation has scratch where the peak inside it is higher than the memory in use both before and after it.
// Threading: sees the operations of the thread that made it; one watch at a time. It uses the memory window
// (device_memory.h), so nobody else may. Units: bytes. Errors: none.
#ifndef DSAT_TRAINER_DEVICE_SCRATCH_MEMORY_H_
#define DSAT_TRAINER_DEVICE_SCRATCH_MEMORY_H_

#include <ATen/record_function.h>

#include <cstdint>

namespace dsat::trainer {

class ScratchMemoryWatch {
 public:
  ScratchMemoryWatch();
  ~ScratchMemoryWatch();
  ScratchMemoryWatch(const ScratchMemoryWatch&) = delete;
  ScratchMemoryWatch& operator=(const ScratchMemoryWatch&) = delete;

  // The most memory that was in use inside any operation, whatever for; 0: there was no operation.
  uint64_t highest_bytes() const;
  // The same, over the operations that had scratch memory.
  uint64_t highest_with_scratch_bytes() const;

 private:
  at::CallbackHandle callback_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_SCRATCH_MEMORY_H_
