// The memory probe: a start-up hook of Python (host/probe/sitecustomize.py) and the files that it leaves.
//
// Purpose: the host puts the hook's folder first on a trial's PYTHONPATH. After the trial's end it reads one small file
//   for each rank from the folder `probe` in the trial's. docs/probe.md has the hook's rules and the files' keys.
// Threading: pure but for the files. Units: bytes. Errors: none. A trial goes on without its probe. A file that cannot
//   be read is left out, and one line of the warnings names it.
#ifndef DSAT_HOST_RUNNER_PROBE_H_
#define DSAT_HOST_RUNNER_PROBE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/environment.h"
#include "runner/runner.h"

namespace dsat::host {

inline constexpr const char* kProbeFolder = "probe";  // in a trial's folder, and beside dsat-launch

// The hook's folder for a study: the one beside dsat-launch; where that cannot be written, or trials run on other
// hosts, a copy of it in the run directory. Empty: there is none, and `notices` says why.
std::filesystem::path find_probe(const std::filesystem::path& launcher, const std::filesystem::path& run_dir,
                                 bool on_other_hosts, std::vector<std::string>& notices);

// Makes the folder for the probe's files in a trial's folder and puts the hook first on PYTHONPATH. Where the folder
// cannot be made the trial runs without. `on_other_hosts`: the hook is copied into that folder and knows the trial by
// its own place, since launchers hand on PYTHONPATH, but no variable of ours.
void add_probe(const std::filesystem::path& hook, const std::filesystem::path& trial_dir, bool on_other_hosts,
               Environment& environment);

// What batches of torch's loaders held.
struct LoadedBatches {
  uint64_t most_samples = 0;  // in any of them
  uint64_t count = 0;         // of the rank that loaded the most
};

// What the ranks of a trial left.
struct ProbeReport {
  int ranks = 0;                                // files that were read
  std::optional<int64_t> world_size;            // as the ranks know it
  std::optional<uint64_t> peak_bytes;           // of the worst rank
  std::optional<uint64_t> device_memory_bytes;  // of the smallest device, or the limit of a process without one
  bool on_device = false;                       // peak and memory are a device's, not a process's
  uint64_t allocator_retries = 0;               // of the worst rank
  std::string engine_version, torch_version;
  std::map<uint64_t, LoadedBatches> batches;  // by the number of samples that the script asked for
  std::vector<std::string> warnings;
};
// A trial whose ranks use devices may also start Python processes that use none, and a trial with ranks some that are
// none: the memory of those counts for nothing.
ProbeReport read_probe(const std::filesystem::path& trial_dir);
// What one rank's file holds. Throws dsat::Error, which begins with the file's name.
ProbeReport parse_probe_file(std::string_view text, const std::string& name);

// Why a trial's figures count samples that it did not have: in `least_count` batches or more that were to hold
// `micro_batch` samples none held that many. Empty: one did, or nobody knows.
std::string why_batches_are_short(const ProbeReport& report, uint64_t micro_batch, uint64_t least_count);

// Adds what the ranks left to a trial's end. The result file goes before the probe. A trial that ran out of memory has
// no peak: what its ranks held is less than what they needed.
void add_to_end(const ProbeReport& report, TrialEnd& end);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PROBE_H_
