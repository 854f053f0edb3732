// A configuration as its leaves: dotted key and value, lists whole.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FACTS_LEAVES_H_
#define DSAT_HOST_FACTS_LEAVES_H_

#include <string>
#include <utility>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::host {

using Leaf = std::pair<std::string, Json>;

// In the configuration's order, without `autotuning`.
std::vector<Leaf> leaves_of(const Json& config);

// What `best` sets otherwise than `own`, in the order of `best`, then what only `own` sets.
std::vector<ConfigChange> changes_between(const Json& own, const Json& best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_LEAVES_H_
