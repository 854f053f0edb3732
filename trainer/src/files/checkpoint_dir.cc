// Tries the folder before hours are spent on what could not be saved, and finds the last whole checkpoint in it.
// A checkpoint is whole when the file that is written last is there.
#include "files/checkpoint_dir.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "dsat/base/numbers.h"
#include "dsat/error.h"

namespace dsat::trainer {

namespace fs = std::filesystem;

void require_writable(const std::string& option, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("{} {}: the folder cannot be made: {}", option, folder, error.message()));
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw Error(fmt::format("{} {}: nothing can be saved there: {}", option, folder, std::strerror(errno)));
}

std::string last_numbered(const std::string& folder, const std::string& prefix, const std::string& file) {
  std::string last;
  int64_t highest = -1;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0 || !fs::exists(entry.path() / file, ignored)) continue;
    const auto number = parse_integer(std::string_view(name).substr(prefix.size()));
    if (!number || *number <= highest) continue;
    highest = *number;
    last = name;
  }
  return last;
}

std::string checkpoint_shard_name(int stage, int stages, int rank) {
  if (stages == 1) return fmt::format("rank_{:05}.ckpt", rank);
  return fmt::format("stage_{:03}_rank_{:05}.ckpt", stage, rank);
}

std::string checkpoint_buffer_name(const std::string& tensor) { return "untrained " + tensor; }

}  // namespace dsat::trainer
