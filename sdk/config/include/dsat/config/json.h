// DeepSpeed configurations as JSON: loading, dotted keys, leaves, merging, identity, text.
//
// Threading: pure functions. Errors: dsat::Error (code DSAT_INVALID_ARGUMENT), one line: what, where, what to do.
#ifndef DSAT_CONFIG_JSON_H_
#define DSAT_CONFIG_JSON_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsat/error.h"

namespace dsat::config {

// Parses JSON with comments. Refuses duplicate keys, NaN and Infinity, more than 100 levels and objects of more than
// 10,000 keys. The time is linear in the text. `source` stands in messages: "ds_config.json:3:14: ...".
Json parse(std::string_view text, const std::string& source);

// JSON on one line, or with `indent` spaces a level. Bytes that are not UTF-8 become U+FFFD; dump() would throw.
std::string text_of(const Json& json, int indent = -1);

// Reads and parses a file. An Error names a missing or unreadable file.
Json load_file(const std::filesystem::path& file);

// As parse(), for what people write: a text that is no JSON may be Hjson, as DeepSpeed reads it
// (docs/configuration.md). The root is then an object, whose braces may be missing.
Json parse_input(std::string_view text, const std::string& source);

// Reads a file that a user names by parse_input(). It may be a pipe (dsat/base/files.h: try_read_input).
Json load_input(const std::filesystem::path& file);

// The value at a dotted key ("zero_optimization.stage"), or nullptr. DeepSpeed's keys have no dots.
const Json* find(const Json& config, std::string_view key);

// The whole number in `json`, for int, int64_t, uint32_t and uint64_t. Anything else, and a number out of T's range, is
// an Error (DSAT_DATA_LOSS). The JSON library's own conversion of 1e40 is undefined.
template <class T>
T whole_number(const Json& json);

// Sets the value at a dotted key and makes the objects above it. A scalar above it is an Error.
void set(Json& config, std::string_view key, Json value);

// Removes the value at a dotted key if it is there. The objects above it stay.
void erase(Json& config, std::string_view key);

// The same, and the objects above it that are empty then.
void erase_with_sections(Json& config, std::string_view key);

// Copies every leaf of `source` over `base`. Objects merge; anything else, lists too, is replaced.
void overwrite(Json& base, const Json& source);

// A dotted key and its value: a scalar, a list or an empty object.
using Leaf = std::pair<std::string, Json>;

// All leaves of an object, in its order. Other values have none.
std::vector<Leaf> leaves_of(const Json& object);

// The identity of a trial: two configurations are the same if and only if these strings are equal. The order of keys
// does not count, and 5e8 equals 500000000. In `autotuning` only a tuned world size counts (world.h).
std::string identity(const Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_JSON_H_
