// The lock of an operator's build that was ended in the middle.
//
// PyTorch builds operators when they are first used, one process at a time (torch.utils.file_baton): a process that
// finds the file `lock` waits until it is gone. A build that was killed leaves it, and every later trial waits for
// ever. Threading: any; reads folders. Errors: none; what cannot be read holds no lock.
#ifndef DSAT_HOST_RUNNER_BUILD_LOCK_H_
#define DSAT_HOST_RUNNER_BUILD_LOCK_H_

#include <filesystem>
#include <optional>

#include "dsat/host/environment.h"

namespace dsat::host {

// A lock that is older than `file`, in TORCH_EXTENSIONS_DIR or below ~/.cache/torch_extensions.
std::optional<std::filesystem::path> build_lock_before(const std::filesystem::path& file,
                                                       const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_BUILD_LOCK_H_
