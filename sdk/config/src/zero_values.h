// The values that DeepSpeed's own checks accept, in the form that dsat's readers expect.
#ifndef DSAT_CONFIG_SRC_ZERO_VALUES_H_
#define DSAT_CONFIG_SRC_ZERO_VALUES_H_

#include <optional>
#include <string>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// Does DeepSpeed refuse unknown keys in this section? Some versions do so in fewer sections.
bool is_closed(std::string_view section);

// dsat's name of a key: zero_optimization.stage3_x for the equivalent zero_optimization.x.
std::string canonical_key(const std::string& key);

// The value of a canonical key as dsat's readers expect it: "yes" is true, 5e8 is 500000000. "auto", which is
// DeepSpeed's default, and values of unchecked keys stay as they are. refuse_value() throws for a value that DeepSpeed
// refuses.
Json canonical_value(std::string_view key, const Json& value);

// The reason why DeepSpeed refuses this zero_optimization section: an older switch beside its replacement, such as
// cpu_offload beside offload_optimizer. nullopt: there is no such pair.
std::optional<std::string> broken_by_replaced(const Json& zero);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_ZERO_VALUES_H_
