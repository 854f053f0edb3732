// The devices of a study: finding them (discover_devices.cc), and planning how many of them a trial takes. Which ones
// it then gets, SlotPool decides (slot_pool.h).
//
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

// The variable that limits what a process sees of this backend: CUDA_VISIBLE_DEVICES, ... nullptr for none.
const char* visibility_variable(Backend backend);

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
  std::optional<int> command_slots;    // processes that the command itself asks for, in all
  std::filesystem::path hostfile{};    // absolute; empty: this machine alone
  // What came out of it, where it is a pipe: nobody can read that again.
  std::optional<std::string> hostfile_text{};
  std::vector<Slot> given{};         // those of an allocation, or of a job to be: neither this machine's nor a file's
  std::string include{}, exclude{};  // nodes and slots, in DeepSpeed's syntax
  // GPUs of each node and nodes of a trial, from the command line; several: a trial may take any of them.
  std::vector<int> num_gpus{}, num_nodes{};
  // The same from the autotuning section. They go first: the command line's numbers then limit what there is.
  std::vector<int> section_gpus{}, section_nodes{};
};

struct SlotPlan {
  Backend backend = Backend::none;
  std::vector<Slot> slots;                      // all of them, of all hosts
  int slots_per_trial = 1;                      // of `shape`
  std::optional<uint64_t> device_memory_bytes;  // the smallest of the slots; nullopt: unknown
  std::vector<std::string> notices{};           // for people, once
  std::filesystem::path hostfile{};             // empty: every slot is this machine's
  // What came out of it, where it is a pipe. The study's folder takes it, and `hostfile` is its name from then on.
  std::optional<std::string> hostfile_text{};
  TrialShape shape{};  // of a trial whose configuration has no size
  // The sizes that are searched, GPUs of a node and nodes; empty, both of them, where all trials are alike.
  std::vector<int> num_gpus{}, num_nodes{};
  // For the best command: do the size, or the slots that may be used, come from elsewhere than the command?
  bool size_is_ours = false, filtered = false;
  int at_once = 1;                        // trials, of the smallest size, that the slots hold
  std::vector<std::string> placements{};  // for people: what there is and what a trial takes of it

  bool sizes_are_tuned() const { return !num_gpus.empty(); }
  TrialShape shape_of(const Json& config) const;  // what a trial of this configuration takes
  // The shapes that trials may have. Where sizes are searched: every pair of them, even one that no placement holds.
  std::vector<TrialShape> shapes() const;
};

// How many trials, of the smallest size, the slots hold at once; 1 at least.
int trials_at_once(const SlotPlan& plan, const std::optional<int>& max_slots);

// Throws dsat::Error: numbers below 1, a bad hostfile or filter, sizes that no placement has, more slots than devices.
SlotPlan plan_slots(const Devices& devices, const SlotRequest& request);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLOTS_SLOTS_H_
