// Finds the lock that a killed build of a PyTorch operator left.
//
// PyTorch builds an operator at its first use, one process at a time (torch.utils.file_baton): a process that finds the
// file `lock` waits until it is gone. If a build is killed, its lock stays, and every later trial waits for ever.
// Threading: any; reads folders. Errors: none; a folder that cannot be read has no lock.
#ifndef DSAT_HOST_RUNNER_BUILD_LOCK_H_
#define DSAT_HOST_RUNNER_BUILD_LOCK_H_

#include <filesystem>
#include <optional>

#include "dsat/host/environment.h"

namespace dsat::host {

// Returns a lock older than `file`, in TORCH_EXTENSIONS_DIR or below ~/.cache/torch_extensions.
std::optional<std::filesystem::path> build_lock_before(const std::filesystem::path& file,
                                                       const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_BUILD_LOCK_H_
