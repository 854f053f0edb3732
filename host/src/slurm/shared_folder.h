// Do the nodes of an allocation see the folders that a study works in?
//
// Threading: starts one step over all nodes and waits. Errors: dsat::Error, one line, that names nodes and folder.
#ifndef DSAT_HOST_SLURM_SHARED_FOLDER_H_
#define DSAT_HOST_SLURM_SHARED_FOLDER_H_

#include <filesystem>

#include "dsat/host/environment.h"
#include "slurm/allocation.h"

namespace dsat::host {

// `run_dir` may still have to be made; the command runs in `cwd`. A step that Slurm does not start now says nothing.
void check_shared(const Allocation& allocation, const std::filesystem::path& run_dir, const std::filesystem::path& cwd,
                  const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_SHARED_FOLDER_H_
