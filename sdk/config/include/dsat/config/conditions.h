// Conditions between the axes of a space: combinations of values that are never tried (docs/configuration.md).
//
//   "if": "stage >= 2"        the axis has other values than its usual one only where this holds
//   "divides": "world_size"   each value of the axis divides this number
//
// A condition names a key of the configuration or of the space, or one of the words stage, micro_batch, accumulation
// and world_size. Threading: plain values, pure functions. Errors: dsat::Error for a text that is none.
#ifndef DSAT_CONFIG_CONDITIONS_H_
#define DSAT_CONFIG_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::config {

inline constexpr const char* kWorldSizeWord = "world_size";

enum class Comparison { equal, unequal, below, at_most, above, at_least, divides };

struct Condition {
  std::string axis;  // the dotted key of the axis that has it
  std::string key;   // what it names: a dotted key, or world_size; empty: `value` is the number to divide
  Comparison comparison = Comparison::equal;
  Json value;        // what the key is compared with
  Json usual;        // the axis' value where an "if" does not hold
  std::string text;  // as written; of "divides" the name or number
};

// Reads "KEY OPERATOR VALUE" with == != < <= > or >=. The value is JSON, or a text without quotes.
Condition parse_if(const std::string& axis, const std::string& text);
// Reads a number, or the name of one.
Condition parse_divides(const std::string& axis, const Json& number);

// "only if KEY == VALUE" or "divides KEY".
std::string describe(const Condition& condition);

// Whether the condition holds if what it names is `named` and the axis is `axis`. Values of other types never fit.
bool holds(const Condition& condition, const Json& axis, const Json& named);

// The first condition that a merged configuration breaks, in one line; nullopt: none. `world_size`: devices of a trial
// whose configuration has no world. `with_micro_batch`: false leaves out what depends on the micro batch.
std::optional<std::string> broken_condition(const std::vector<Condition>& conditions, const Json& config,
                                            std::optional<int64_t> world_size, bool with_micro_batch = true);

Json to_json(const Condition& condition);
Condition condition_from_json(const Json& json);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_CONDITIONS_H_
