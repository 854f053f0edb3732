// The memory of the device that this process's rank computes on: what tensors take of it, and what was refused.
//
// Ownership: set_device_memory() takes the one DeviceMemory of the process and keeps it until the process ends, because
// tensors are freed until then. Threading: any thread; set_device_memory() before the first tensor. Units: bytes.
// Errors: none; what was refused is asked with out_of_memory().
#ifndef DSAT_TRAINER_DEVICE_DEVICE_MEMORY_H_
#define DSAT_TRAINER_DEVICE_DEVICE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dsat::trainer {

struct OutOfMemory {
  uint64_t requested = 0;  // bytes
  uint64_t in_use = 0;
  uint64_t budget = 0;  // 0: the machine itself had no more
};

// The first allocation that was refused: later ones follow from it. Threading: any thread.
class FirstRefusal {
 public:
  void note(const OutOfMemory& refused) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!first_) first_ = refused;
  }
  std::optional<OutOfMemory> get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_;
  }
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    first_.reset();
  }

 private:
  mutable std::mutex mutex_;  // guards first_
  std::optional<OutOfMemory> first_;
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual uint64_t in_use() const = 0;  // bytes, of tensors
  virtual uint64_t peak() const = 0;    // the highest in_use() so far, or since restart_peak()
  virtual void restart_peak() = 0;
  // The highest since the last begin_window(), for a look at a part of a step.
  virtual void begin_window() = 0;
  virtual uint64_t window_peak() const = 0;
  // LibTorch may pass a refusal on as any kind of exception, so the reason is asked here, not read from the exception.
  virtual FirstRefusal& refusal() = 0;
};

// From now on the functions below speak of this memory; before that there is none, and they return 0.
void set_device_memory(std::unique_ptr<DeviceMemory> memory);

uint64_t memory_in_use();  // bytes
uint64_t memory_peak();
// The peak until the first call, which ends the load of the model: from then on memory_peak() counts anew.
uint64_t memory_load_peak();
void begin_memory_window();
uint64_t memory_window_peak();
std::optional<OutOfMemory> out_of_memory();
// For a step that was made in spite of a refusal: a library has tried something smaller.
void clear_out_of_memory();

// "out of memory: tried to allocate 12.0 MB; in use 90.1 MB of 100 MB"
std::string describe(const OutOfMemory& failure);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_DEVICE_MEMORY_H_
