// Finds in a trial's logs that memory ran out, whose it was, and how much at least was needed.
// Threading: pure functions. Units: bytes. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_SHORTAGE_H_
#define DSAT_HOST_OUTPUTS_SHORTAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outputs/log_lines.h"

namespace dsat::host {

// The message that says most, and the bound on the peak that all messages give together.
struct Shortage {
  std::string line;                           // empty: there is no shortage
  LineMeaning memory = LineMeaning::nothing;  // of the device, of the host, or the host's pinned memory
  std::optional<uint64_t> peak_above_bytes;   // a lower bound of the peak on the device
  bool is_refused_in_plenty = false;          // all messages: to be asked again before it counts

  bool is_there() const { return !line.empty(); }
};

// Adds the messages of one log. A message about the device is more exact than one about the machine, which a scheduler
// may add later, and one about pinned memory more exact than one about the machine's.
// `meanings`: the meanings of each line. `rank`: whose log it is. `on_processors`: the device's memory is the
// machine's.
void add_shortages(const std::vector<std::string>& lines, const std::vector<Meanings>& meanings,
                   std::optional<int> rank, bool on_processors, Shortage& into);

// Returns the message, and says where memory ran out unless it was on the device.
std::string describe(const Shortage& shortage);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_SHORTAGE_H_
