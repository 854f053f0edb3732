// The folder of a study and the launcher of its trials: found, made, emptied.
//
// Threading: control thread. Errors: dsat::Error, naming the folder and what to give instead.
#ifndef DSAT_HOST_STUDY_RESULTS_RUN_DIR_H_
#define DSAT_HOST_STUDY_RESULTS_RUN_DIR_H_

#include <filesystem>

#include "plan/plan.h"
#include "record/run_lock.h"

namespace dsat::host {

// dsat-launch: the given one, or the one beside this program, or the installed one.
std::filesystem::path find_launcher(const std::filesystem::path& given);

// Makes the plan's folder, for its owner alone, and locks it. `is_chosen`: the host has chosen the name, so the next
// free name is taken if a study that began at the same moment has this one. Throws for a folder of another user, or a
// parent that the host has chosen, as RunLock::take.
RunLock claim_run_dir(Plan& plan, bool is_chosen, Trust trust = Trust::own);

// Writes a hostfile that came out of a pipe into the folder, for trials and the best command.
void keep_given_hostfile(Plan& plan);

// Deletes what an earlier study left in DIR, which is locked. Files that do not belong to a study stay.
void delete_study(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESULTS_RUN_DIR_H_
