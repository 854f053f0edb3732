// Walks through the folders in which Python looks for packages, in its order.
#include "base/python_packages.h"

#include <algorithm>
#include <system_error>

#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/base/split.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

using Folders = std::vector<fs::path>;

constexpr size_t kMaxPathFileBytes = size_t{1} << 16;

// Returns the entries of a folder, sorted, so that the same folder gives the same result.
Folders entries_of(const fs::path& folder) {
  Folders entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Packages that are installed in place (pip install -e) are named in .pth files.
void add_named_folders(const fs::path& site, Folders& folders) {
  for (const fs::path& file : entries_of(site)) {
    if (file.extension() != ".pth") continue;
    for (const std::string& line : split(try_read_file(file, kMaxPathFileBytes).bytes, '\n')) {
      const fs::path folder = site / line;
      std::error_code error;
      if (!line.empty() && line[0] != '#' && fs::is_directory(folder, error)) folders.push_back(folder);
    }
  }
}

// Adds PREFIX/lib/python3.11/site-packages and the like.
void add_prefix(const fs::path& prefix, Folders& folders) {
  for (const fs::path& python : entries_of(prefix / "lib")) {
    if (!starts_with(python.filename().string(), "python3")) continue;
    for (const char* name : {"site-packages", "dist-packages"}) {
      std::error_code error;
      if (!fs::is_directory(python / name, error)) continue;
      folders.push_back(python / name);
      add_named_folders(python / name, folders);
    }
  }
}

Folders package_folders(const std::string& program, const fs::path& cwd, const Environment& environment) {
  Folders folders{cwd};
  for (const std::string& folder : split(get_variable(environment, "PYTHONPATH").value_or(""), ':')) {
    if (!folder.empty()) folders.push_back(cwd / folder);
  }
  if (const auto file = find_program(program, cwd, environment); file.ok()) {
    add_prefix(file.value().parent_path().parent_path(), folders);
    std::error_code error;
    const fs::path real = fs::canonical(file.value(), error);
    if (!error) add_prefix(real.parent_path().parent_path(), folders);
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = get_variable(environment, name)) add_prefix(*prefix, folders);
  }
  if (const auto home = get_variable(environment, "HOME")) add_prefix(fs::path(*home) / ".local", folders);
  return folders;
}

}  // namespace

std::optional<fs::path> find_in_packages(const std::vector<std::string>& names, const std::string& program,
                                         const fs::path& cwd, const Environment& environment) {
  for (const fs::path& folder : package_folders(program, cwd, environment)) {
    for (const std::string& name : names) {
      std::error_code error;
      if (fs::exists(folder / name, error)) return folder / name;
    }
  }
  return std::nullopt;
}

}  // namespace dsat::host
