// Reads what launchers print about a failure: their own, or that of the rank that failed first.
// And the hook's line about a configuration that it did not inject.
// Threading: pure functions. Errors: none. Lines are printable and not empty.
#ifndef DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_
#define DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_

#include <optional>
#include <string>
#include <vector>

namespace dsat::host {

// Returns "torchrun failed by itself: AttributeError: ...", or "" if it did not: if there is no traceback of a
// launcher, or one that reports a failed child, or one of the script's. What a torch without libuv needs comes first,
// whoever wants it. `lines`: standard error.
std::string launcher_failure(const std::vector<std::string>& lines);

// Returns for each line whether it belongs to a traceback of a launcher.
std::vector<bool> lines_of_launchers(const std::vector<std::string>& lines);

// How a rank ended.
struct RankEnd {
  std::optional<int> rank;  // nullopt: the launcher does not say which
  int code = 0;             // its exit status; negative: the signal that killed it
};

// Returns the end of the rank that failed first, as torchrun, deepspeed or accelerate report it; nullopt: none does.
std::optional<RankEnd> first_rank_end(const std::vector<std::string>& lines);

// Returns why the hook left the script's own configuration (host/probe/dsat_inject.py), or "" if it did not.
std::string not_injected(const std::vector<std::string>& lines);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_
