// The SHA-256 of a file, in hex: how a resumed study knows that a plugin is still the one it started with.
#ifndef DSAT_HOST_BASE_SHA256_H_
#define DSAT_HOST_BASE_SHA256_H_

#include <filesystem>
#include <string>

namespace dsat::host {

// "" when the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_SHA256_H_
