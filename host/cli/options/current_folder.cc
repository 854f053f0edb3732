// Avoids the exception of the standard library, whose message does not help a user. Usually the folder was removed
// while the shell was in it.
#include "options/current_folder.h"

#include <fmt/format.h>

#include "dsat/error.h"

namespace dsat::cli {

std::filesystem::path current_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::current_path(error);
  if (error)
    throw Error(fmt::format("the current folder cannot be used: {}: change to one that exists", error.message()));
  return folder;
}

}  // namespace dsat::cli
