// Recognises the folder of a study that never began.
// Threading: any thread. Errors: none; a folder that cannot be read does not count.
#ifndef DSAT_HOST_RECORD_ABANDONED_START_H_
#define DSAT_HOST_RECORD_ABANDONED_START_H_

#include <filesystem>

namespace dsat::host {

// A copy of a hostfile that was a pipe, in the study's folder.
inline constexpr const char* kGivenHostfile = "dsat.hostfile";

// Whether DIR holds only what a host leaves that was killed at its start. A new study may use such a folder.
bool is_abandoned_start(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_ABANDONED_START_H_
