// Turns errors of the system into one line each. dsat/base writes the files, so that a reader never sees half a file.
#include "export/files.h"

#include <fmt/format.h>

#include <fstream>

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

void extend_export(const std::filesystem::path& file, std::string_view bytes) {
  const FileText before = try_read_file(file, bytes.size());
  const bool grows = before.ok() && !before.bytes.empty() && bytes.substr(0, before.bytes.size()) == before.bytes;
  if (!grows) return write_export(file, bytes);
  const std::string_view rest = bytes.substr(before.bytes.size());
  std::ofstream out(file, std::ios::binary | std::ios::app);
  out.write(rest.data(), static_cast<std::streamsize>(rest.size())).flush();
  if (!out) write_export(file, bytes);  // tries the whole file, and throws the error
}

}  // namespace dsat::cli
