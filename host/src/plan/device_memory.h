// How much memory a trial's device has, and how much of it the best configuration may need.
//
// Purpose: the memory comes from the first of these that knows it: --device-memory, the first trial that reports it,
//   the vendor's tool that listed the slots. --memory-margin acts in usable().
// Threading: control thread. Units: bytes of one device.
#ifndef DSAT_HOST_PLAN_DEVICE_MEMORY_H_
#define DSAT_HOST_PLAN_DEVICE_MEMORY_H_

#include <cstdint>
#include <optional>

#include "plan/plan.h"

namespace dsat::host {

class DeviceMemory {
 public:
  explicit DeviceMemory(const Plan& plan);

  // A trial has ended and reports the memory of its device, or nothing.
  void learn(std::optional<uint64_t> reported);

  // As given or reported, without what the vendor's tool says.
  std::optional<uint64_t> given_or_reported() const { return given_or_reported_; }
  std::optional<uint64_t> all() const { return given_or_reported_ ? given_or_reported_ : of_slots_; }
  // All of it but the margin.
  std::optional<uint64_t> usable() const;

 private:
  std::optional<uint64_t> given_or_reported_;
  std::optional<uint64_t> of_slots_;
  double margin_;  // a share, from 0 to below 1
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_DEVICE_MEMORY_H_
