// DeepSpeed configurations as JSON: loading, dotted keys, leaves, leaf-by-leaf overwriting, identity, text.
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

// Parses JSON. Comments are allowed; duplicate keys are refused with their path, NaN and Infinity by name, depth
// beyond 100 and objects of more than 10,000 keys as such. Linear in the text. `source` stands in messages:
// "ds_config.json:3:14: ...".
Json parse(std::string_view text, const std::string& source);

// JSON on one line, or indented by that many spaces a level. Bytes that are not UTF-8 become U+FFFD; dump() alone
// throws.
std::string text_of(const Json& json, int indent = -1);

// Reads and parses a file; a missing or unreadable one is an Error that names it.
Json load_file(const std::filesystem::path& file);

// The same for a file that a user names and that is read once. It may be a pipe (dsat/base/files.h: try_read_input).
Json load_input(const std::filesystem::path& file);

// The value at a dotted key ("zero_optimization.stage"), or nullptr. No key of DeepSpeed's holds a dot.
const Json* find(const Json& config, std::string_view key);

// The whole number that `json` holds; defined for int, int64_t, uint32_t and uint64_t. Anything else, and a number that
// T cannot hold, is an Error (DSAT_DATA_LOSS): the JSON library's own conversion of 1e40 is undefined.
template <class T>
T whole_number(const Json& json);

// Sets the value at a dotted key, making objects on the way. A scalar on the way is an Error.
void set(Json& config, std::string_view key, Json value);

// Removes the value at a dotted key if it is there; objects on the way stay.
void erase(Json& config, std::string_view key);

// Copies every leaf of `source` over `base`: objects merge, everything else (lists too) is replaced whole.
void overwrite(Json& base, const Json& source);

// A dotted key and its value. The value is anything but an object that has members; lists stay whole.
using Leaf = std::pair<std::string, Json>;

// All leaves of an object, in its order. Any other value has none.
std::vector<Leaf> leaves_of(const Json& object);

// What identifies a trial. Of `autotuning` only a tuned world size counts (world.h); the order of keys does not; 5e8
// and 500000000 are the same. Two configurations are the same if and only if these strings are equal.
std::string identity(const Json& config);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_JSON_H_
