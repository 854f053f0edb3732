// Slots: the devices that trials run on. Finding them, planning how many a trial takes, handing them out.
//
// Threading: control thread; discover_devices may run a vendor's tool and wait for it.
#ifndef DSAT_HOST_SLOTS_H_
#define DSAT_HOST_SLOTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/status.h"
#include "environment.h"

namespace dsat::host {

enum class Backend { none, cuda, hip, rocr, level_zero };

// The variable that limits what a process sees of this backend: CUDA_VISIBLE_DEVICES, ... nullptr for none.
const char* visibility_variable(Backend backend);

struct Slot {
  std::string id;              // as the visibility variable takes it: an index, or a UUID where the caller named UUIDs
  std::optional<int> ordinal;  // its index on this machine: what `deepspeed --include` takes
  std::optional<uint64_t> memory_bytes;
};

struct Devices {
  Backend backend = Backend::none;
  std::vector<Slot> slots;
};

// The accelerators of this machine, by nvidia-smi or rocm-smi where PATH has them, limited to those that the caller's
// own visibility variables leave, in their order. No accelerator: backend none, no slots.
Devices discover_devices(const Environment& environment);

struct SlotRequest {
  std::optional<int> slots;            // --slots; nullopt: auto
  std::optional<int> slots_per_trial;  // --slots-per-trial
  std::optional<int> max_slots;        // --max-slots
  std::optional<int> command_slots;    // what the command's own launcher flag says
};

struct SlotPlan {
  Backend backend = Backend::none;
  std::vector<Slot> slots;
  int slots_per_trial = 1;
  std::optional<uint64_t> device_memory_bytes;  // the smallest of the slots; nullopt: unknown
  std::vector<std::string> notices;             // to be said once
};

// Invalid: numbers below 1, more slots per trial than slots (or than --max-slots), more slots than devices.
Result<SlotPlan> plan_slots(const Devices& devices, const SlotRequest& request);

// Who has which slot now.
class SlotPool {
 public:
  SlotPool(std::vector<Slot> slots, std::optional<int> max_in_use);
  int free() const;
  std::vector<Slot> take(int count);  // at most free(); the first ones
  void give_back(const std::vector<Slot>& slots);

 private:
  struct Entry {
    Slot slot;
    bool taken = false;
  };
  std::vector<Entry> entries_;
  int max_in_use_;
  int in_use_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_H_
