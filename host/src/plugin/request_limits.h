// How much a plugin may ask for: beyond it a request is refused, or the call has failed.
//
// A searcher asks for a few trials in an event and a profile has some kilobytes; these limits only keep a defect from
// taking the host's memory or time. Units: bytes.
#ifndef DSAT_HOST_PLUGIN_REQUEST_LIMITS_H_
#define DSAT_HOST_PLUGIN_REQUEST_LIMITS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dsat/abi.h"
#include "dsat/error.h"

namespace dsat::host {

inline constexpr size_t kMaxOpsPerEvent = 10'000;
inline constexpr size_t kMaxJsonBytes = size_t{1} << 20;    // overrides, or a profile
inline constexpr size_t kMaxJsonDepth = 100;                // as of a configuration
inline constexpr size_t kMaxEventBytes = size_t{64} << 20;  // all requests of one event
inline constexpr size_t kMaxLineBytes = 4096;               // a note, a reason, a line of the log: the rest is cut off
inline constexpr size_t kMaxLogLines = 10'000;              // of one call: the rest is dropped
inline constexpr size_t kMaxStateBytes = size_t{256} << 20;

// How deep the brackets outside of strings lie in each other.
size_t depth_of(std::string_view json);

// The JSON object in `text`, or nullopt and what is wrong in `why`.
std::optional<Json> bounded_object(dsat_str text, std::string& why);

// What is left out of the log of one call.
class LogLimit {
 public:
  void begin_call() { lines_ = 0; }
  // False: there was too much already. `line` may become what is logged in its place.
  bool admits(std::string& line);

 private:
  size_t lines_ = 0;
};

// Text of a plugin as one printable line, cut where it is too long. Bytes that a NULL pointer has are none.
std::string bounded_line(dsat_str text);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_REQUEST_LIMITS_H_
