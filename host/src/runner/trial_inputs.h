// Makes a trial's configuration and the variables of its environment.
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

// Returns the user's configuration with the protocol's `autotuning` section, which keeps the user's keys, and with the
// trial's own swap folders, because DeepSpeed empties a swap folder when it starts.
Json trial_config(const TrialSpec& spec, const std::filesystem::path& trial_dir, const TrialMeasurement& measurement);

// Removes the trial's own swap folders below `nvme_path`, in which DeepSpeed leaves its files.
void remove_swap_folders(const Json& config, const std::filesystem::path& trial_dir);

// Returns DSAT_TRIAL_ID, DSAT_TRIAL_DIR, DSAT_DS_CONFIG, MASTER_PORT, PYTHONUNBUFFERED, the backend's visibility
// variable and, if `caller` does not set it, CUDA's order of devices.
Environment trial_variables(const TrialSpec& spec, const std::filesystem::path& trial_dir, uint16_t port,
                            Backend backend, const std::vector<Slot>& slots, const Environment& caller);

// Returns the variables of the only rank, if `caller` sets none of them.
Environment lone_rank(const Environment& caller);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_INPUTS_H_
