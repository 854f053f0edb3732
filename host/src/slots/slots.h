// Finds the devices of a study (discover_devices.cc) and plans how many of them a trial takes. SlotPool assigns them to
// trials (slot_pool.h).
// Threading: control thread; discover_devices may run a vendor's tool and wait for it.
#ifndef DSAT_HOST_SLOTS_SLOTS_H_
#define DSAT_HOST_SLOTS_SLOTS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/environment.h"
#include "slots/slot_pool.h"

namespace dsat::host {

enum class Backend { none, cuda, hip, rocr, level_zero };

// The variable that limits the visible devices of this backend: CUDA_VISIBLE_DEVICES, ...; nullptr: none.
const char* visibility_variable(Backend backend);

struct Devices {
  Backend backend = Backend::none;
  std::vector<Slot> slots;
};

// Returns this machine's accelerators by nvidia-smi or rocm-smi, limited to the caller's visibility variables and in
// their order. Without accelerator: backend none, no slots.
Devices discover_devices(const Environment& environment);

struct SlotRequest {
  std::optional<int> slots;            // --slots; nullopt: auto
  std::optional<int> slots_per_trial;  // --slots-per-trial
  std::optional<int> max_slots;        // --max-slots
  std::optional<int> command_slots;    // the number of processes in the command, on all nodes
  std::filesystem::path hostfile{};    // absolute; empty: only this machine
  // The text of a hostfile that is a pipe, which can be read only once.
  std::optional<std::string> hostfile_text{};
  std::vector<Slot> given{};  // slots of an allocation or a future job, instead of this machine's or a hostfile's
  std::string include{}, exclude{};  // nodes and slots in DeepSpeed's syntax
  // GPUs per node and nodes of a trial, from the command line; if there are several, a trial may take any of them.
  std::vector<int> num_gpus{}, num_nodes{};
  // The same from the autotuning section. They have priority; the command line's numbers then limit the usable slots.
  std::vector<int> section_gpus{}, section_nodes{};
};

struct SlotPlan {
  Backend backend = Backend::none;
  std::vector<Slot> slots;                      // all slots of all hosts
  int slots_per_trial = 1;                      // as in `shape`
  std::optional<uint64_t> device_memory_bytes;  // of the smallest slot; nullopt: unknown
  std::vector<std::string> notices{};           // for people, shown once
  std::filesystem::path hostfile{};             // empty: all slots are on this machine
  // The text of a hostfile that is a pipe. It is copied to the study's folder, and then `hostfile` names the copy.
  std::optional<std::string> hostfile_text{};
  TrialShape shape{};  // of a trial whose configuration has no size
  // The sizes to search, as GPUs per node and nodes; both are empty if all trials have one size.
  std::vector<int> num_gpus{}, num_nodes{};
  // For the best command: whether the size, or the usable slots, are not given by the command.
  bool size_is_ours = false, filtered = false;
  int at_once = 1;                        // how many trials of the smallest size run at once
  std::vector<std::string> placements{};  // for people: the slots and what a trial takes

  bool sizes_are_tuned() const { return !num_gpus.empty(); }
  TrialShape shape_of(const Json& config) const;  // the slots of a trial with this configuration
  // The shapes that trials may have. If sizes are searched: every pair of them, even one without a placement.
  std::vector<TrialShape> shapes() const;
};

// Returns how many trials of the smallest size can run at once; at least 1.
int trials_at_once(const SlotPlan& plan, const std::optional<int>& max_slots);

// Throws dsat::Error: numbers below 1, a bad hostfile or filter, sizes without a placement, more slots than devices.
SlotPlan plan_slots(const Devices& devices, const SlotRequest& request);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_SLOTS_H_
