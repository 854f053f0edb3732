// DeepSpeed's defaults of the keys that dsat tunes.
// Threading: a pure function. Errors: none.
#ifndef DSAT_CONFIG_DEFAULTS_H_
#define DSAT_CONFIG_DEFAULTS_H_

#include <string>

#include "dsat/error.h"

namespace dsat::config {

// The value that an absent key has at this ZeRO stage; null: unknown.
Json deepspeed_default(const std::string& key, int stage);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_DEFAULTS_H_
