// Lists the values that the best configuration changes in the user's own.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FACTS_CHANGES_H_
#define DSAT_HOST_FACTS_CHANGES_H_

#include <optional>
#include <vector>

#include "dsat/config/json.h"
#include "dsat/host/facts.h"

namespace dsat::host {

// The leaves are in the order of the configuration.
std::vector<config::Leaf> leaves_without_autotuning(const Json& config);

// Returns the user's own configuration as it was given, from a plan and the settings; an axis has its first value, as
// in the measured one. nullopt: the plan has only a substitute, because a trace has no configuration.
std::optional<Json> own_as_given(const Json& plan, const Json& settings);

// Returns values of `best` that differ from `own`, in the order of `best`, then values that only `own` has; without
// `autotuning`.
std::vector<ConfigChange> changes_between(const Json& own, const Json& best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_CHANGES_H_
