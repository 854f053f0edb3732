// Did a trial run what its configuration asks for?
//
// Purpose: a script may have a batch size, a ZeRO stage, an accumulation or a number of processes of its own, and still
//   report figures that were computed from the configuration. The memory probe sees what DeepSpeed's engines ran with,
//   the shapes that they were fed, and the batch sizes of torch's loaders.
// Threading: pure functions. Errors: none; what the probe did not see is no deviation.
#ifndef DSAT_HOST_OUTPUTS_AS_ASKED_H_
#define DSAT_HOST_OUTPUTS_AS_ASKED_H_

#include <cstdint>
#include <optional>
#include <string>

#include "dsat/error.h"
#include "outputs/probe_report.h"

namespace dsat::host {

// The key of a deviation whose subject is the number of data-parallel ranks, which no key of DeepSpeed's has.
inline constexpr const char* kDataParallelSize = "data_parallel_size";

// A key of the configuration that the trial did not follow, and what it ran with in its place. Its data set may be the
// reason: its loaders asked for the micro batch, and no batch was full.
struct Deviation {
  std::string key;
  int64_t had = 0;
  bool of_data_set = false;
};

// `window`: optimizer steps until the end of the profile window. Loaders with fewer batches than it has micro steps are
// those of an evaluation, or of a first attempt.
std::optional<Deviation> find_deviation(const Json& config, const ProbeReport& report, int window);

// The reason of a trial's failure. It names no micro batch, since failures of one cause must be equal.
std::string describe(const Deviation& deviation);

// The shapes that the engine was fed, if they show its batch: those of a script that follows its configuration change
// with the micro batch. Empty: unknown, or they vary from step to step.
std::string inputs_seen(const ProbeReport& report);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_AS_ASKED_H_
