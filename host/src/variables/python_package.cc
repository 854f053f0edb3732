// Finds the Python package relative to the launcher and appends its folder to PYTHONPATH, after the user's own
// packages.
#include "variables/python_package.h"

#include <fmt/format.h>

#include <system_error>

#include "dsat/error.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFolder = "python";
constexpr const char* kProof = "determined/__init__.py";  // shows that the folder is the right one

fs::path copy_of(const fs::path& package, const fs::path& run_dir) {
  const fs::path folder = run_dir / kFolder;
  std::error_code error;
  for (const char* name : {"determined", "dsat"}) {
    fs::create_directories(folder / name, error);
    if (!error) {
      fs::copy(package / name, folder / name, fs::copy_options::recursive | fs::copy_options::overwrite_existing,
               error);
    }
    if (error) throw Error(fmt::format("{}: {}", (folder / name).string(), error.message()));
  }
  return folder;
}

}  // namespace

fs::path find_python_package(const fs::path& launcher, const fs::path& run_dir, bool on_other_hosts,
                             std::vector<std::string>& notices) {
  const fs::path beside = launcher.parent_path() / kFolder;
  const fs::path installed = (launcher.parent_path() / DSAT_PYTHON_DIR_FROM_LIBEXEC).lexically_normal();
  try {
    std::error_code error;
    fs::path folder = fs::exists(beside / kProof, error) ? beside : installed;
    if (!fs::exists(folder / kProof, error)) throw Error(fmt::format("no file {}", (folder / kProof).string()));
    if (on_other_hosts) folder = copy_of(folder, run_dir);
    if (folder.string().find(':') == std::string::npos) return folder;
    throw Error(fmt::format("PYTHONPATH cannot name {}, which has a colon", folder.string()));
  } catch (const Error& error) {
    notices.push_back(fmt::format("trials run without dsat's Python packages (determined and dsat): {}", error.what()));
    return {};
  }
}

void add_python_package(const fs::path& folder, const Environment& environment, Environment& variables) {
  const auto own = get_variable(variables, "PYTHONPATH");
  const std::string users = own ? *own : get_variable(environment, "PYTHONPATH").value_or("");
  set_variable(variables, "PYTHONPATH", users.empty() ? folder.string() : users + ":" + folder.string());
}

}  // namespace dsat::host
