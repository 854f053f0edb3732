// What DeepSpeed's own checks take at a key, and the form in which dsat's readers expect it.
#ifndef DSAT_CONFIG_SRC_ZERO_VALUES_H_
#define DSAT_CONFIG_SRC_ZERO_VALUES_H_

#include <optional>
#include <string>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// A section whose unknown keys DeepSpeed refuses: zero_optimization and the offload sections in it.
bool is_closed(std::string_view section);

// The name under which dsat knows a key: zero_optimization.stage3_x for the equal zero_optimization.x.
std::string canonical_key(const std::string& key);

// The single value at a canonical key as dsat's readers expect it: "yes" is true, 5e8 is 500000000. "auto", which is
// DeepSpeed's default, and values of keys that are not checked stay. An Error of refuse_value() where DeepSpeed
// refuses.
Json canonical_value(std::string_view key, const Json& value);

// Why DeepSpeed refuses this zero_optimization section: it has an older switch and what replaced it, say cpu_offload
// and offload_optimizer; nullopt: it has no such pair.
std::optional<std::string> broken_by_replaced(const Json& zero);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_ZERO_VALUES_H_
