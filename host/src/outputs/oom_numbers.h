// The numbers of an out-of-memory message: what was wanted, what was taken already, what there is.
//
// Purpose: a configuration that ran out of memory needs more than it had when it failed plus what it asked for then.
//   That is a lower bound of its peak, which the memory models take in beside the peaks that were measured.
// Units: bytes. Threading: pure functions. Errors: none; a number that makes no sense is left out.
#ifndef DSAT_HOST_OUTPUTS_OOM_NUMBERS_H_
#define DSAT_HOST_OUTPUTS_OOM_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace dsat::host {

struct OomNumbers {
  std::optional<double> wanted;     // the request that failed
  std::optional<double> allocated;  // by tensors, at that moment
  std::optional<double> reserved;   // by the caching allocator, `allocated` included
  std::optional<double> total;      // the device's memory, or the limit that was set
};

// `message`: the line with the message and, where the message goes on, the lines after it.
OomNumbers read_oom_numbers(const std::string& message);

// allocated + wanted; nullopt where one is missing or where they contradict the others.
std::optional<uint64_t> peak_above_bytes(const OomNumbers& numbers);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_OOM_NUMBERS_H_
