// Checks whether the nodes of an allocation see the folders of a study.
// Threading: starts one step on all nodes and waits. Errors: dsat::Error, one line with nodes and folder.
#ifndef DSAT_HOST_SLURM_SHARED_FOLDER_H_
#define DSAT_HOST_SLURM_SHARED_FOLDER_H_

#include <filesystem>

#include "dsat/host/environment.h"
#include "slurm/allocation.h"

namespace dsat::host {

// `run_dir` may not exist yet; the command runs in `cwd`. If Slurm does not start the step now, there is no error.
void check_shared(const Allocation& allocation, const std::filesystem::path& run_dir, const std::filesystem::path& cwd,
                  const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_SHARED_FOLDER_H_
