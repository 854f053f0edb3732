// The Python package of this project (sdk/python) in the trials of an experiment file.
//
// Purpose: scripts written for Determined import `determined` and `dsat`. The folder with both comes last in
//   PYTHONPATH: a package of the user's own goes before it. It still goes before site-packages, and within an
//   experiment the stand-in `determined` gives way to no installed one (sdk/python/determined/__init__.py).
// Threading: pure but for the files. Errors: none; a study goes on without, and a notice says why.
#ifndef DSAT_HOST_RUNNER_PYTHON_PACKAGE_H_
#define DSAT_HOST_RUNNER_PYTHON_PACKAGE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/host/environment.h"

namespace dsat::host {

// The package's folder: beside dsat-launch in a build, below share/ where it is installed; a copy in the run directory
// for trials on other hosts. Empty: there is none.
std::filesystem::path find_python_package(const std::filesystem::path& launcher, const std::filesystem::path& run_dir,
                                          bool on_other_hosts, std::vector<std::string>& notices);

// Puts `folder` last in PYTHONPATH of `variables`, behind what these or else `environment` have.
void add_python_package(const std::filesystem::path& folder, const Environment& environment, Environment& variables);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PYTHON_PACKAGE_H_
