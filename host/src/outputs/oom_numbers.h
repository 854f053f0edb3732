// Reads the numbers in an out-of-memory message.
//
// A configuration that ran out of memory needs at least what was allocated when it failed plus what it asked for. The
// memory models use this lower bound of the peak beside measured peaks.
// Units: bytes. Threading: pure functions. Errors: none; a number that makes no sense is left out.
#ifndef DSAT_HOST_OUTPUTS_OOM_NUMBERS_H_
#define DSAT_HOST_OUTPUTS_OOM_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace dsat::host {

struct OomNumbers {
  std::optional<double> wanted;     // the request that failed
  std::optional<double> allocated;  // by tensors, when the request failed
  std::optional<double> reserved;   // by the caching allocator, `allocated` included
  std::optional<double> total;      // the device's memory, or a lower limit that was set
  std::optional<double> free{};     // on the device
};

// `message`: the line with the message, and the lines after it if the message goes on.
OomNumbers read_oom_numbers(const std::string& message);

// Returns allocated + wanted; nullopt: one of them is missing, or they contradict the other numbers.
std::optional<uint64_t> peak_above_bytes(const OomNumbers& numbers);

// Does the message ask for more than any device has? An overflow, not a model that is too large.
bool asks_for_the_impossible(const std::string& message);

// Was the request refused although much more was free, with no limit set below the device's memory? Once may be chance:
// another program that came and went, a driver's hiccup.
bool is_refused_in_plenty(const OomNumbers& numbers);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_OOM_NUMBERS_H_
