// Counts the devices of a trial's slots. Threading: a pure function. Errors: none.
#ifndef DSAT_HOST_RECORD_DEVICES_H_
#define DSAT_HOST_RECORD_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dsat/base/numbers.h"

namespace dsat::host {

// A slot is one device. In a simulated study it is a range of devices: "0-7".
inline int64_t devices_in(const std::vector<std::string>& slots) {
  int64_t devices = 0;
  for (const std::string& slot : slots) {
    const size_t dash = slot.find('-');
    const auto first = parse_integer(slot.substr(0, dash), 0);
    const auto last = dash == std::string::npos ? first : parse_integer(slot.substr(dash + 1), 0);
    devices += first && last && *last >= *first ? *last - *first + 1 : 1;
  }
  return devices;
}

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_DEVICES_H_
