// Reads from a trial's log where its script saves checkpoints and how many engines it makes. These depend on the script
// and not on the configuration. docs/real-deepspeed.md lists the lines.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_SCRIPT_SIGNS_H_
#define DSAT_HOST_OUTPUTS_SCRIPT_SIGNS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace dsat::host {

// Returns the first folder outside `trial_dir` in which a checkpoint was saved; "": there is none. `cwd`: where the
// trial ran; both paths are absolute.
std::string checkpoint_folder_outside(const std::vector<std::string>& lines, const std::filesystem::path& cwd,
                                      const std::filesystem::path& trial_dir);

// Returns the folder if it is outside `trial_dir`, else "".
std::string if_outside(const std::string& folder, const std::filesystem::path& trial_dir);

// Returns how many engines rank 0 made; each prints its configuration once. 0: unknown.
int count_engines(const std::vector<std::string>& lines);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_SCRIPT_SIGNS_H_
