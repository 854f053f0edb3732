// What the best configuration sets otherwise than the user's own, leaf by leaf.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FACTS_CHANGES_H_
#define DSAT_HOST_FACTS_CHANGES_H_

#include <optional>
#include <vector>

#include "dsat/config/json.h"
#include "dsat/host/facts.h"

namespace dsat::host {

// In the configuration's order.
std::vector<config::Leaf> leaves_without_autotuning(const Json& config);

// The user's own configuration as it was given, by a plan and the settings; an axis has its first value, as where it is
// measured. nullopt: a trace without one, whose plan has only a configuration that stands in for it.
std::optional<Json> own_as_given(const Json& plan, const Json& settings);

// Without `autotuning`: what `best` sets otherwise than `own`, in the order of `best`, then what only `own` sets.
std::vector<ConfigChange> changes_between(const Json& own, const Json& best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_CHANGES_H_
