// What a trial's log says of its script, whatever the configuration: where it saves checkpoints, how many engines it
// makes. By DeepSpeed's own lines (docs/real-deepspeed.md).
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_SCRIPT_SIGNS_H_
#define DSAT_HOST_OUTPUTS_SCRIPT_SIGNS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace dsat::host {

// The first folder outside the trial's own in which a checkpoint was saved; empty: there is none. `cwd`: where the
// trial ran; both paths are absolute.
std::string checkpoint_folder_outside(const std::vector<std::string>& lines, const std::filesystem::path& cwd,
                                      const std::filesystem::path& trial_dir);

// How many engines rank 0 made: each prints its configuration once. 0: unknown.
int count_engines(const std::vector<std::string>& lines);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_SCRIPT_SIGNS_H_
