// Naming one key that DeepSpeed does not know; shared by the configuration's check and the space file's.
#ifndef DSAT_CONFIG_SRC_UNKNOWN_KEY_H_
#define DSAT_CONFIG_SRC_UNKNOWN_KEY_H_

#include <string>

#include "dsat/base/spelling.h"
#include "dsat/config/rules.h"

namespace dsat::config {

// For a `name` that key_kind() does not know in `section` ("" is the top level).
UnknownKey describe_unknown(const std::string& section, const std::string& name);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_UNKNOWN_KEY_H_
