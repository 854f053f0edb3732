// The largest value that a counter has had, kept by several threads without a lock.
//
// Threading: any thread. Units: bytes, as everything that is counted in this room. Errors: none.
#ifndef DSAT_TRAINER_DEVICE_HIGH_WATER_MARK_H_
#define DSAT_TRAINER_DEVICE_HIGH_WATER_MARK_H_

#include <atomic>
#include <cstdint>

namespace dsat::trainer {

class HighWaterMark {
 public:
  uint64_t bytes() const { return bytes_; }
  void reset(uint64_t bytes) { bytes_ = bytes; }
  // The mark becomes `bytes` unless it is higher already.
  void raise_to(uint64_t bytes) {
    uint64_t seen = bytes_;
    while (seen < bytes && !bytes_.compare_exchange_weak(seen, bytes)) {
    }
  }

 private:
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEVICE_HIGH_WATER_MARK_H_
