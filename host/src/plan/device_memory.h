// The memory of a trial's device, and the part of it that the best configuration may need.
//
// The memory size comes from the first of: --device-memory, the first trial that reports it, the vendor's tool that
// listed the slots. --memory-margin acts in usable(). Threading: control thread. Units: bytes of one device.
#ifndef DSAT_HOST_PLAN_DEVICE_MEMORY_H_
#define DSAT_HOST_PLAN_DEVICE_MEMORY_H_

#include <cstdint>
#include <optional>

#include "plan/plan.h"

namespace dsat::host {

class DeviceMemory {
 public:
  explicit DeviceMemory(const Plan& plan);

  // Takes the memory that a trial reports at its end, if any.
  void learn(std::optional<uint64_t> reported);

  // The size that was given or reported, not the vendor's tool's.
  std::optional<uint64_t> given_or_reported() const { return given_or_reported_; }
  std::optional<uint64_t> all() const { return given_or_reported_ ? given_or_reported_ : of_slots_; }
  // The memory without the margin.
  std::optional<uint64_t> usable() const;

 private:
  std::optional<uint64_t> given_or_reported_;
  std::optional<uint64_t> of_slots_;
  double margin_;  // a share, from 0 to below 1
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_DEVICE_MEMORY_H_
