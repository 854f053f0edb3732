// The options of every training program: configuration, ranks, devices.
//
// Threading: pure functions. Errors: dsat::Error, one line that names the option and its text.
#ifndef DSAT_TRAINER_SETTINGS_WORLD_OPTION_SET_H_
#define DSAT_TRAINER_SETTINGS_WORLD_OPTION_SET_H_

#include <string>
#include <vector>

#include "dsat/cli/option_set.h"

namespace dsat::trainer {

cli_kit::OptionSet world_option_set();

// Adds options of which the last occurrence holds, as in all of this program's.
void add_options(cli_kit::OptionSet& set, const std::string& heading, std::vector<cli_kit::Option> options);

// What is left over when all of a program's options, `known`, are taken: one token that nothing takes is an error.
void refuse_leftovers(const std::vector<std::string>& tokens, const cli_kit::OptionSet& known,
                      const std::string& how_to_get_help);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_WORLD_OPTION_SET_H_
