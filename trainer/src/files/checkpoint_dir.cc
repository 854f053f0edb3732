#include "files/checkpoint_dir.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "dsat/error.h"

namespace dsat::trainer {

namespace fs = std::filesystem;

void require_writable(const std::string& option, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(option + " " + folder + ": the folder cannot be made: " + error.message());
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw Error(option + " " + folder + ": nothing can be saved there: " + std::strerror(errno));
}

std::string last_numbered(const std::string& folder, const std::string& prefix, const std::string& file) {
  std::string last;
  int64_t highest = -1;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0 || !fs::exists(entry.path() / file, ignored)) continue;
    int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [at, code] = std::from_chars(name.data() + prefix.size(), end, number);
    if (code != std::errc() || at != end || number <= highest) continue;
    highest = number;
    last = name;
  }
  return last;
}

}  // namespace dsat::trainer
