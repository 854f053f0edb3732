// Where dsat's own files lie, as seen from the program or the shared library that holds this code: beside it, as they
// are built, or below the same prefix, as they are installed; else where they were installed first.
//
// Threading: pure functions.
#ifndef DSAT_HOST_BASE_INSTALLED_H_
#define DSAT_HOST_BASE_INSTALLED_H_

#include <filesystem>
#include <string>
#include <vector>

namespace dsat::host {

// The folders that may hold dsat's plugins, the nearest first.
std::vector<std::filesystem::path> bundled_plugin_folders();

// A helper program such as dsat-launch: `given`, or the nearest of its own if `given` is empty. Throws Error, which
// ends with `advice`, if there is none, and Error if it may not be run.
std::filesystem::path find_helper(const std::string& program, const std::filesystem::path& given,
                                  const std::string& advice);

// A simulated cluster that comes with dsat, by the name of its file without .json. Empty: there is none of that name.
std::filesystem::path find_bundled_simulation(const std::string& name);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_INSTALLED_H_
