// Tells a study that never began from one that did.
//
// Threading: any thread. Errors: none; a folder that cannot be read does not count.
#ifndef DSAT_HOST_RECORD_HALF_STARTED_H_
#define DSAT_HOST_RECORD_HALF_STARTED_H_

#include <filesystem>

namespace dsat::host {

// The hostfile of a study that was given a pipe for one, in the study's folder.
inline constexpr const char* kGivenHostfile = "dsat.hostfile";

// Does DIR hold no more than what a host that was killed at its very start leaves behind? A new study takes it.
bool is_half_started(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_HALF_STARTED_H_
