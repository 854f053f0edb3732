// Looks for a file or folder of an installed Python package, without running Python.
//
// Threading: any; looks at files. Errors: none.
#ifndef DSAT_HOST_BASE_PYTHON_PACKAGES_H_
#define DSAT_HOST_BASE_PYTHON_PACKAGES_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/environment.h"

namespace dsat::host {

// Returns the first place at which one of `names` ("trl/accelerate_configs") exists: below the working folder,
// PYTHONPATH, the site-packages beside `program`, of the active environment and of the user, and the folders that their
// .pth files name. nullopt: it is nowhere.
std::optional<std::filesystem::path> find_in_packages(const std::vector<std::string>& names, const std::string& program,
                                                      const std::filesystem::path& cwd, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_PYTHON_PACKAGES_H_
