// DeepSpeed prints the path of each file that it saves, FOLDER/TAG/FILE, and a heading for each engine's configuration.
#include "outputs/script_signs.h"

#include <algorithm>
#include <string_view>
#include <system_error>

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

bool is_below(const fs::path& file, const fs::path& folder) {
  const fs::path relative = file.lexically_relative(folder.lexically_normal());
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

std::string if_outside(const std::string& folder, const fs::path& trial_dir) {
  std::error_code error;  // the script may know the trial's folder by a link
  const bool is_inside = is_below(folder, trial_dir) || is_below(folder, fs::weakly_canonical(trial_dir, error));
  return is_inside ? "" : folder;
}

std::string checkpoint_folder_outside(const std::vector<std::string>& lines, const fs::path& cwd,
                                      const fs::path& trial_dir) {
  constexpr std::string_view kSaving = "[Torch] Saving ", kDots = "...";
  for (const std::string& line : lines) {
    const size_t at = line.find(kSaving);
    const size_t dots = line.rfind(kDots);
    if (at == std::string::npos || dots == std::string::npos || dots <= at + kSaving.size()) continue;
    const size_t begin = at + kSaving.size();
    const fs::path file = (cwd / line.substr(begin, dots - begin)).lexically_normal();
    if (!is_below(file, trial_dir)) return file.parent_path().parent_path().string();
  }
  return "";
}

int count_engines(const std::vector<std::string>& lines) {
  const auto count = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("DeepSpeedEngine configuration:") != std::string::npos;
  });
  return static_cast<int>(count);
}

}  // namespace dsat::host
