// Such a folder has a lock that nobody holds, files of a new journal, a hostfile from a pipe, and nothing else.
#include "record/abandoned_start.h"

#include <string>
#include <system_error>

#include "dsat/base/owner.h"
#include "record/run_lock.h"

namespace dsat::host {

namespace fs = std::filesystem;

bool is_abandoned_start(const fs::path& dir) {
  std::error_code error;
  if (!why_others_control(dir).empty()) return false;
  if (fs::exists(dir / "dsat.db", error) || RunLock::is_held(dir)) return false;
  bool is_ours = false;  // an empty folder may belong to anybody
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name != "dsat.lock" && name != kGivenHostfile && name.rfind("dsat.db", 0) != 0) return false;
    is_ours = true;
  }
  return is_ours && !error;
}

}  // namespace dsat::host
