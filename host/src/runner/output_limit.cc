// Sums the sizes of the trial's two streams and of its ranks' logs, and asks the file system what is free.
#include "runner/output_limit.h"

#include <fmt/format.h>

#include <system_error>

#include "command/command_template.h"
#include "dsat/base/units.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const uintmax_t bytes = fs::is_regular_file(fs::symlink_status(file, error)) ? fs::file_size(file, error) : 0;
  return error ? 0 : bytes;
}

}  // namespace

uint64_t output_bytes(const fs::path& trial_dir) {
  uint64_t bytes = size_of(trial_dir / kStdoutFile) + size_of(trial_dir / kStderrFile);
  constexpr int kMostEntries = 1000;
  int entries = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(trial_dir / kRankLogFolder, error), end;
       !error && it != end && entries < kMostEntries; it.increment(error), ++entries) {
    bytes += size_of(it->path());
  }
  return bytes;
}

std::string why_too_much(uint64_t bytes, std::optional<uint64_t> free) {
  if (bytes <= kHarmlessOutputBytes) return "";
  const auto size = [](uint64_t count) { return format_size(static_cast<double>(count)); };
  if (bytes > kMostOutputBytes) {
    return fmt::format("printed {}: a trial may print {} (look into its stdout.log and stderr.log)", size(bytes),
                       size(kMostOutputBytes));
  }
  if (!free || *free >= bytes) return "";
  return fmt::format("printed {} and left {} free on the disk (look into its stdout.log and stderr.log)", size(bytes),
                     size(*free));
}

}  // namespace dsat::host
