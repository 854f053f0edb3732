// Axes that are parts of the command, and commands that have no DeepSpeed configuration at all.
// Threading: pure functions. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_PLAN_COMMAND_AXES_H_
#define DSAT_HOST_PLAN_COMMAND_AXES_H_

#include <string>
#include <vector>

#include "plan/plan.h"

namespace dsat::host {

// Returns where the command uses a key: a word with {KEY}, or a flag that is mapped to it. Empty: nowhere.
std::string use_in_command(const std::string& key, const Plan& plan);

// Keys of the space file that are neither DeepSpeed's nor in a word of the command. A YAML of the command may have
// them.
std::vector<std::string> keys_of_files(const Plan& plan);

// A key of the space file whose {KEY} stands in the command has no value of the user's own but the first of its list.
void take_first_values(Plan& plan);

// Throws Error for an axis that the command cannot take: a value of two words, a variable that dsat sets itself.
void check_command_axes(const Plan& plan);

// Without a configuration only what stands in the command is tuned. Then the stage is 0 unless `given_stages` has
// some, and the micro batch is fixed unless the command follows it.
void tune_command_alone(const std::vector<int>& given_stages, Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_COMMAND_AXES_H_
