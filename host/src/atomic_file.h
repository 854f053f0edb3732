// Files that are either the old ones or the new ones, whenever the machine stops.
#ifndef DSAT_HOST_ATOMIC_FILE_H_
#define DSAT_HOST_ATOMIC_FILE_H_

#include <filesystem>
#include <string_view>

#include "dsat/host/status.h"

namespace dsat::host {

// Writes a temporary file beside `file`, syncs it, renames it over `file` and syncs the folder. On an error (internal,
// naming file and cause) the old file is untouched and nothing is left behind.
Status write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace dsat::host

#endif  // DSAT_HOST_ATOMIC_FILE_H_
