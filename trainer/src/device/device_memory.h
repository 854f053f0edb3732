// The memory of the device that this process's rank computes on: what tensors take of it, and what was refused.
//
// Threading: any thread.
#ifndef DSAT_TRAINER_DEVICE_DEVICE_MEMORY_H_
#define DSAT_TRAINER_DEVICE_DEVICE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dsat::trainer {

struct OutOfMemory {
  uint64_t requested = 0;  // bytes
  uint64_t in_use = 0;
  uint64_t budget = 0;  // 0: the machine itself had no more
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual uint64_t in_use() const = 0;  // bytes, of tensors
  virtual uint64_t peak() const = 0;    // the highest in_use() so far
  // The highest since the last begin_window(), for a look at a part of a step.
  virtual void begin_window() = 0;
  virtual uint64_t window_peak() const = 0;
  // The first allocation that was refused. LibTorch may pass the failure on as any kind of exception, so the reason is
  // asked here, not read from the exception.
  virtual std::optional<OutOfMemory> refused() const = 0;
  virtual void forget_refusal() = 0;
};

// From now on the functions below speak of this memory; before that there is none, and they say 0. For good.
void use_memory(std::unique_ptr<DeviceMemory> memory);

uint64_t memory_in_use();  // bytes
uint64_t memory_peak();
void begin_memory_window();
uint64_t memory_window_peak();
std::optional<OutOfMemory> out_of_memory();
// A step was made in spite of it: a library has tried something smaller.
void forget_out_of_memory();

// "out of memory: tried to allocate 12.0 MB; in use 90.1 MB of 100 MB"
std::string describe(const OutOfMemory& failure);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_DEVICE_MEMORY_H_
