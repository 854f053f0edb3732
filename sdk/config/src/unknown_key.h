// Describes one key that DeepSpeed does not know, for the checks of configurations and space files.
#ifndef DSAT_CONFIG_SRC_UNKNOWN_KEY_H_
#define DSAT_CONFIG_SRC_UNKNOWN_KEY_H_

#include <string>

#include "dsat/base/spelling.h"
#include "dsat/config/rules.h"

namespace dsat::config {

// `name`: unknown to key_kind() in `section`. "" is the top level.
UnknownKey describe_unknown(const std::string& section, const std::string& name);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_UNKNOWN_KEY_H_
