// What a trial is given: its configuration and the variables of its environment.
//
// Threading: any; nothing is shared. Errors: none.
#ifndef DSAT_HOST_RUNNER_TRIAL_INPUTS_H_
#define DSAT_HOST_RUNNER_TRIAL_INPUTS_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "dsat/host/environment.h"
#include "dsat/host/settings.h"
#include "runner/runner.h"
#include "slots/slots.h"

namespace dsat::host {

// The user's configuration as the trial gets it: with the protocol's `autotuning` section, the user's own keys of it
// kept, and with folders of its own to swap to: DeepSpeed empties such a folder when it starts.
Json trial_config(const TrialSpec& spec, const std::filesystem::path& trial_dir, const TrialMeasurement& measurement);

// Removes the folders below `nvme_path` that a trial with this configuration of the user's had of its own: DeepSpeed
// leaves what it swapped there.
void remove_swap_folders(const Json& config, const std::filesystem::path& trial_dir);

// DSAT_TRIAL_ID, DSAT_TRIAL_DIR, DSAT_DS_CONFIG, MASTER_PORT, PYTHONUNBUFFERED, the backend's visibility variable and,
// where `caller`'s own variables leave it open, the order in which CUDA counts devices.
Environment trial_variables(const TrialSpec& spec, const std::filesystem::path& trial_dir, uint16_t port,
                            Backend backend, const std::vector<Slot>& slots, const Environment& caller);

// The place of a trial's only process, where `caller` gives it none.
Environment lone_rank(const Environment& caller);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_INPUTS_H_
