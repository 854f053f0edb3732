// Processes of trials that outlived their host and their launcher, found by a mark in their environment.
//
// Purpose: dsat-launch ends a trial's processes when the host dies. Where it was killed as well, and a process has left
//   its session, only the mark tells whose it is: the variable names the run directory, and no other program sets it.
// Threading: blocks for at most the patience. Errors: none; a process of another user is none of ours.
#ifndef DSAT_HOST_RUNNER_ORPHANS_H_
#define DSAT_HOST_RUNNER_ORPHANS_H_

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <vector>

namespace dsat::host {

// In the environment of each process of a trial: the run directory. Not in cmd.txt: who runs that line again runs no
// trial.
inline constexpr const char* kStudyVariable = "DSAT_STUDY_DIR";

// Live processes of this machine with that mark, this one left out.
std::vector<pid_t> processes_of_study(const std::filesystem::path& run_dir);

struct Reaped {
  size_t ended = 0;             // processes that were killed, and are gone
  std::vector<pid_t> are_left;  // that cannot be ended: in the kernel, or another user's by now
};

// Kills them, and what they start meanwhile, until none is left.
Reaped reap_orphans(const std::filesystem::path& run_dir,
                    std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_ORPHANS_H_
