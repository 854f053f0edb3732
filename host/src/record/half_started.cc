// Looks at the names in the folder: a lock that nobody holds, the beginnings of a journal, what a pipe gave, and
// nothing else.
#include "record/half_started.h"

#include <string>
#include <system_error>

#include "record/run_lock.h"

namespace dsat::host {

namespace fs = std::filesystem;

bool is_half_started(const fs::path& dir) {
  std::error_code error;
  if (fs::exists(dir / "dsat.db", error) || RunLock::is_held(dir)) return false;
  bool is_ours = false;  // an empty folder may be anybody's
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name != "dsat.lock" && name != kGivenHostfile && name.rfind("dsat.db", 0) != 0) return false;
    is_ours = true;
  }
  return is_ours && !error;
}

}  // namespace dsat::host
