// The conditions of a space file's axes, as far as they are known before a study: names, stages, fixed numbers.
#ifndef DSAT_CONFIG_SRC_SETTLE_CONDITIONS_H_
#define DSAT_CONFIG_SRC_SETTLE_CONDITIONS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsat/config/space.h"
#include "space_entries.h"

namespace dsat::config {

// All values that trials may have of a key. An empty list: nothing has that name. nullopt: the values are not known.
using PossibleValues = std::function<std::optional<std::vector<Json>>(const std::string& key)>;

// Restricts an entry's stages and values by its conditions, and returns the conditions that each configuration decides
// for itself. Throws Error for a condition that names nothing or the axis itself, that never holds, and for an axis
// without a value. The entry names its stages. `usual`: the value where an "if" does not hold.
std::vector<Condition> settle_conditions(SpaceEntry& entry, const Json& usual, const PossibleValues& possible,
                                         std::vector<std::string>& notices);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_SETTLE_CONDITIONS_H_
