// Puts the system's answers into one line each.
// Bytes go through dsat/base, so that a reader never sees half a file.
#include "export/files.h"

#include <fmt/format.h>

#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::cli {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && std::filesystem::is_directory(folder, error)) return;
  const std::string why = error ? error.message() : "a file of that name is there";
  throw Error(fmt::format("{}: cannot make this folder: {}: name another one with -o", folder.string(), why));
}

void write_export(const std::filesystem::path& file, std::string_view bytes) {
  write_file_atomically(file, bytes, Durability::renamed);
}

}  // namespace dsat::cli
