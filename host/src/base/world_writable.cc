// Checks the mode of the file and of its folder, after following links.
#include "base/world_writable.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

namespace dsat::host {

std::string why_world_writable(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  struct stat own {
  }, around{};
  if (error || stat(real.c_str(), &own) != 0) return "";
  if ((own.st_mode & S_IWOTH) != 0) return fmt::format("everybody can write to it (chmod o-w {})", real.string());
  const std::filesystem::path folder = real.parent_path();
  if (stat(folder.c_str(), &around) != 0 || (around.st_mode & S_IWOTH) == 0) return "";
  const bool keeps_files = (around.st_mode & S_ISVTX) != 0;
  if (keeps_files && (own.st_uid == geteuid() || own.st_uid == 0)) return "";
  return fmt::format("everybody can put files into its folder (chmod o-w {})", folder.string());
}

}  // namespace dsat::host
