// Hjson, the relaxed JSON in which DeepSpeed reads a configuration: comments, no quotes, commas too many or too few.
#ifndef DSAT_CONFIG_SRC_HJSON_H_
#define DSAT_CONFIG_SRC_HJSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// The object in a text, as hjson's Python package reads it; nullopt: it is none. `text` is valid UTF-8 without a byte
// order mark. Errors: as JsonTree (equal keys, depth). The time is linear in the text.
std::optional<Json> parse_hjson(std::string_view text, const std::string& source);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_HJSON_H_
