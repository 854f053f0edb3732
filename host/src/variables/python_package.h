// Makes this project's Python packages (sdk/python) available to the trials of an experiment file.
//
// Scripts written for Determined import `determined` and `dsat`. The folder with both comes last in PYTHONPATH, so the
// user's own packages have priority. It comes before site-packages, and within an experiment the stand-in `determined`
// is used even if Determined is installed (sdk/python/determined/__init__.py).
// Threading: pure except for the files. Errors: none; a study runs without the packages, and a notice has the reason.
#ifndef DSAT_HOST_VARIABLES_PYTHON_PACKAGE_H_
#define DSAT_HOST_VARIABLES_PYTHON_PACKAGE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/host/environment.h"

namespace dsat::host {

// Returns the package's folder: beside dsat-launch in a build, below share/ in an installation, or a copy in the run
// directory if trials run on other hosts. Empty: there is none.
std::filesystem::path find_python_package(const std::filesystem::path& launcher, const std::filesystem::path& run_dir,
                                          bool on_other_hosts, std::vector<std::string>& notices);

// Appends `folder` to PYTHONPATH in `variables`; the earlier value comes from `variables`, or else from `environment`.
void add_python_package(const std::filesystem::path& folder, const Environment& environment, Environment& variables);

}  // namespace dsat::host

#endif  // DSAT_HOST_VARIABLES_PYTHON_PACKAGE_H_
