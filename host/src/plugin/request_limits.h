// Limits on a plugin's requests. Beyond them a request is refused or the call fails.
//
// A searcher asks for a few trials per event, and a profile has a few kilobytes. The limits only keep a defect from
// using up the host's memory or time. Units: bytes.
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
inline constexpr size_t kMaxJsonDepth = 100;                // as for a configuration
inline constexpr size_t kMaxEventBytes = size_t{64} << 20;  // all requests of one event
inline constexpr size_t kMaxLineBytes = 4096;               // a note, a reason, a log line; longer text is cut
inline constexpr size_t kMaxLogLines = 10'000;              // of one call; further lines are dropped
inline constexpr size_t kMaxStateBytes = size_t{256} << 20;

// Returns the depth of nested brackets outside strings.
size_t depth_of(std::string_view json);

// Returns the JSON object in `text`; nullopt: see `why`.
std::optional<Json> bounded_object(dsat_str text, std::string& why);

// Limits the log of one call.
class LogLimit {
 public:
  void begin_call() { lines_ = 0; }
  // Returns false if there were too many lines already. May replace `line` by a note about this.
  bool admits(std::string& line);

 private:
  size_t lines_ = 0;
};

// Returns a plugin's text as one printable line of limited length. The size of a NULL text is ignored.
std::string bounded_line(dsat_str text);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_REQUEST_LIMITS_H_
