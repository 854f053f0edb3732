// Files that are either the old ones or the new ones, whenever the machine stops.
#ifndef DSAT_HOST_BASE_ATOMIC_FILE_H_
#define DSAT_HOST_BASE_ATOMIC_FILE_H_

#include <filesystem>
#include <string_view>

#include "dsat/host/status.h"

namespace dsat::host {

// synced: on disk when the call returns. renamed: whole or not there at all for every reader, but the machine may stop
// before it is on disk; for files that can be made again, at a tenth of the time.
enum class Durability { synced, renamed };

// Writes a temporary file beside `file`, renames it over `file`, and syncs both as asked. On an error (internal, naming
// file and cause) the old file is untouched and nothing is left behind.
Status write_file_atomically(const std::filesystem::path& file, std::string_view bytes,
                             Durability durability = Durability::synced);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_ATOMIC_FILE_H_
