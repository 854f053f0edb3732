// Which keys of a DeepSpeed configuration this trainer cannot obey.
//
// Threading: pure functions. Errors: dsat::Error, one line that names the key and what to do.
#ifndef DSAT_TRAINER_SETTINGS_CONFIG_KEYS_H_
#define DSAT_TRAINER_SETTINGS_CONFIG_KEYS_H_

#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::trainer {

// Throws dsat::Error on the first key that asks for another training than this trainer can do.
void refuse_unsupported(const Json& config);

// One line for each key that is set, has no effect here, and would change speed, memory or numbers elsewhere. What
// `config` switches on counts; unknown keys are named as they are written.
std::vector<std::string> warn_of_ignored(const Json& config, const Json& written);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_CONFIG_KEYS_H_
