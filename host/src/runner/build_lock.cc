// The lock of an operator is ROOT/OPERATOR/lock, or ROOT/VERSIONS/OPERATOR/lock below the home folder.
#include "runner/build_lock.h"

#include <system_error>

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_lock(const fs::path& folder, fs::file_time_type before, int depth) {
  std::error_code error;
  const fs::path lock = folder / "lock";
  const fs::file_time_type written = fs::last_write_time(lock, error);
  if (!error && written < before) return lock;
  if (depth == 0) return std::nullopt;
  fs::directory_iterator entries(folder, error);
  if (error) return std::nullopt;
  for (const fs::directory_entry& entry : entries) {
    if (!entry.is_directory(error)) continue;
    if (auto found = find_lock(entry.path(), before, depth - 1)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> build_lock_before(const fs::path& file, const Environment& environment) {
  std::error_code error;
  const fs::file_time_type before = fs::last_write_time(file, error);
  if (error) return std::nullopt;
  constexpr int kDepth = 2;
  if (const auto named = get_variable(environment, "TORCH_EXTENSIONS_DIR")) return find_lock(*named, before, kDepth);
  const auto home = get_variable(environment, "HOME");
  return home ? find_lock(fs::path(*home) / ".cache/torch_extensions", before, kDepth) : std::nullopt;
}

}  // namespace dsat::host
