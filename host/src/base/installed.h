// Where dsat's own files lie, as seen from the program or the shared library that holds this code: beside it, as they
// are built, or below the same prefix, as they are installed; else where they were installed first.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_BASE_INSTALLED_H_
#define DSAT_HOST_BASE_INSTALLED_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dsat::host {

// The folders that may hold dsat's plugins, the nearest first.
std::vector<std::filesystem::path> bundled_plugin_folders();

// The paths that a helper program such as dsat-launch may have, the nearest first.
std::vector<std::filesystem::path> places_of_helper(const std::string& program);

// The first of them that is there.
std::optional<std::filesystem::path> find_helper(const std::string& program);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_INSTALLED_H_
