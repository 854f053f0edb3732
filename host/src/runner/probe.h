// The memory probe: a start-up hook of Python (host/probe/sitecustomize.py) and the files that it writes.
//
// The host puts the hook's folder first on a trial's PYTHONPATH. After the trial's end it reads one small file per rank
// from the folder `probe` of the trial. docs/probe.md has the hook's rules and the keys of the files.
// Threading: pure except for the files. Units: bytes. Errors: none. A trial can run without its probe. A file that
// cannot be read is left out, and one warning names it.
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

// Returns the hook's folder for a study: the one beside dsat-launch, or a copy in the run directory if that folder is
// not writable or trials run on other hosts. Empty: there is none; `notices` has the reason.
std::filesystem::path find_probe(const std::filesystem::path& launcher, const std::filesystem::path& run_dir,
                                 bool on_other_hosts, std::vector<std::string>& notices);

// Makes the folder for the probe's files and puts the hook first on PYTHONPATH. If the folder cannot be made, the trial
// runs without probe. `on_other_hosts`: copies the hook into that folder, so that it finds the trial by its own path;
// launchers pass on PYTHONPATH, but not our variables.
void add_probe(const std::filesystem::path& hook, const std::filesystem::path& trial_dir, bool on_other_hosts,
               Environment& environment);

// Batches of torch's loaders.
struct LoadedBatches {
  uint64_t most_samples = 0;  // the most in one batch
  uint64_t count = 0;         // on the rank that loaded the most
};

// The summary of the ranks' files.
struct ProbeReport {
  int ranks = 0;                                // files that were read
  std::optional<int64_t> world_size;            // as the ranks report it
  std::optional<uint64_t> peak_bytes;           // of the rank with the largest
  std::optional<uint64_t> device_memory_bytes;  // of the smallest device, or the limit of a process without device
  bool on_device = false;                       // peak and memory are of a device, not of a process
  uint64_t allocator_retries = 0;               // of the rank with the most
  std::string engine_version, torch_version, driver_version;
  std::map<uint64_t, LoadedBatches> batches;  // by the batch size that the script asked for
  std::vector<std::string> warnings;
};
// If any rank uses a device, the memory of processes without device is ignored. If there is any rank, that of processes
// without rank is ignored.
// none: the memory of those counts for nothing.
ProbeReport read_probe(const std::filesystem::path& trial_dir);
// Reads the file of one rank. Throws dsat::Error, which begins with the file's name.
ProbeReport parse_probe_file(std::string_view text, const std::string& name);

// Returns the reason why a trial's metrics count samples that it did not have: at least `least_count` batches of size
// `micro_batch` were loaded, and none was full. Empty: one was full, or it is unknown.
std::string why_batches_are_short(const ProbeReport& report, uint64_t micro_batch, uint64_t least_count);

// Adds the report to a trial's end. The result file has priority. A trial that ran out of memory gets no peak, because
// its ranks held less than they needed.
void add_to_end(const ProbeReport& report, TrialEnd& end);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PROBE_H_
