// Turns errors of the system into one line each. dsat/base writes the files, so that a reader never sees half a file.
#include "export/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "dsat/base/files.h"
#include "dsat/base/owner.h"
#include "dsat/error.h"

namespace dsat::cli {

void refuse_links_of_others(const std::filesystem::path& path) {
  const auto link = link_of_others(path);
  if (!link) return;
  throw Error(fmt::format("-o {}: {} is a link that another user made: name the path itself, or another one",
                          path.string(), link->string()));
}

void make_folder(const std::filesystem::path& folder) {
  refuse_links_of_others(folder);
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
  // A file of another user is replaced by a copy.
  const OpenedFile opened = open_own_file(file, O_WRONLY | O_APPEND);
  if (opened.fd < 0) return write_export(file, bytes);
  const std::string_view rest = bytes.substr(before.bytes.size());
  const bool is_whole = write(opened.fd, rest.data(), rest.size()) == static_cast<ssize_t>(rest.size());
  if (close(opened.fd) != 0 || !is_whole) write_export(file, bytes);  // tries the whole file, and throws the error
}

}  // namespace dsat::cli
