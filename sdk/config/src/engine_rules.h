// Rules of DeepSpeed's engine: it refuses these combinations when it starts, though each key alone is valid.
#ifndef DSAT_CONFIG_SRC_ENGINE_RULES_H_
#define DSAT_CONFIG_SRC_ENGINE_RULES_H_

#include <optional>
#include <string>

#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::config {

// The first of these rules that a merged configuration breaks, in one line; nullopt: none.
std::optional<std::string> broken_engine_rule(const Json& config, int stage, const RuleOptions& options);

// ", but zero_optimization.stage is 2", the end of a sentence about a rule.
std::string but_stage(int stage);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_ENGINE_RULES_H_
