// Finds programs like a shell: in the folders of PATH, or at a path with a slash.
#include "dsat/host/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/guarded.h"

namespace dsat::host {

namespace {

bool names(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0;
}

enum class Found { nothing, folder, not_executable, executable };

Found look_at(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (error || !std::filesystem::exists(status)) return Found::nothing;
  if (std::filesystem::is_directory(status)) return Found::folder;
  return access(file.c_str(), X_OK) == 0 ? Found::executable : Found::not_executable;
}

std::filesystem::path program_at(const std::string& name, const std::filesystem::path& cwd) {
  const std::filesystem::path file = cwd / name;
  switch (look_at(file)) {
    case Found::executable:
      return file;
    case Found::not_executable:
      throw Error(fmt::format("command '{0}' is not executable (chmod +x {0}, or name its interpreter)", name));
    case Found::folder:
      throw Error(fmt::format("command '{}' is a folder, not a program", name));
    case Found::nothing:
      break;
  }
  throw Error(fmt::format("command '{}' not found: no such file in {}", name, cwd.string()));
}

std::filesystem::path program_in_path(const std::string& name, const std::filesystem::path& cwd,
                                      const std::string& path) {
  std::optional<std::filesystem::path> not_executable;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    // An empty or relative entry of PATH is relative to the folder in which the command will run.
    const std::filesystem::path file = cwd / path.substr(start, end - start) / name;
    const Found found = look_at(file);
    if (found == Found::executable) return file;
    if (found == Found::not_executable && !not_executable) not_executable = file;
    start = end + 1;
  }
  if (not_executable) {
    throw Error(fmt::format("command '{}' is not executable: {} (chmod +x it)", name, not_executable->string()));
  }
  const bool is_here = look_at(cwd / name) != Found::nothing;
  throw Error(fmt::format("command '{}' not found in PATH", name) +
              (is_here ? fmt::format("; the one here is './{}'", name) : ""));
}

}  // namespace

Environment current_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

std::optional<std::string> get_variable(const Environment& environment, std::string_view name) {
  const auto it = std::find_if(environment.begin(), environment.end(), [&](const auto& e) { return names(e, name); });
  if (it == environment.end()) return std::nullopt;
  return it->substr(name.size() + 1);
}

void set_variable(Environment& environment, std::string_view name, std::string_view value) {
  const auto end =
      std::remove_if(environment.begin(), environment.end(), [&](const auto& entry) { return names(entry, name); });
  environment.erase(end, environment.end());
  environment.push_back(fmt::format("{}={}", name, value));
}

Result<std::filesystem::path> find_program(const std::string& name, const std::filesystem::path& cwd,
                                           const Environment& environment) {
  return as_result([&] {
    if (name.empty()) throw Error("the command's first word is empty: name a program");
    if (name.find('/') != std::string::npos) return program_at(name, cwd);
    return program_in_path(name, cwd, get_variable(environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  });
}

}  // namespace dsat::host
