// The SHA-256 of a file in hex. A resumed study checks with it that a plugin has not changed.
#ifndef DSAT_HOST_BASE_SHA256_H_
#define DSAT_HOST_BASE_SHA256_H_

#include <filesystem>
#include <string>

namespace dsat::host {

// Returns "" if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_SHA256_H_
