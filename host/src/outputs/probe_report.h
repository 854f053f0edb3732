// The files that the memory probe's hook leaves in a trial's folder (docs/probe.md has the keys).
//
// Threading: pure except for reading the files. Units: bytes. Errors: none; a file that cannot be read is left out, and
// one warning names it.
#ifndef DSAT_HOST_OUTPUTS_PROBE_REPORT_H_
#define DSAT_HOST_OUTPUTS_PROBE_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsat::host {

inline constexpr const char* kProbeFolder = "probe";  // in a trial's folder, and beside dsat-launch

// Batches of torch's loaders.
struct LoadedBatches {
  uint64_t most_samples = 0;  // the most in one batch
  uint64_t count = 0;         // on the rank that loaded the most
};

// An engine of DeepSpeed's in one rank, as the hook saw it.
struct EngineRun {
  std::optional<int64_t> micro_batch, accumulation, train_batch, stage;  // the engine's own
  uint64_t steps = 0;                                                    // micro steps that it was fed
  std::string inputs;  // shapes of the tensors of a micro step, "4x128.4": "_" is a size that varies
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
  std::vector<EngineRun> engines;             // of all ranks
  std::string checkpoint;                     // the first folder that an engine saved one in; empty: none
  std::vector<std::string> warnings;
};
// If any rank uses a device, the memory of processes without device is ignored. If there is any rank, that of processes
// without rank is ignored.
ProbeReport read_probe(const std::filesystem::path& trial_dir);
// Reads the file of one rank. Throws dsat::Error, which begins with the file's name.
ProbeReport parse_probe_file(std::string_view text, const std::string& name);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_PROBE_REPORT_H_
