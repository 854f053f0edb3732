#include "base/option_values.h"

#include <charconv>

#include "dsat/base/units.h"
#include "dsat/error.h"

namespace dsat::trainer {

int64_t parse_integer(const std::string& name, const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || at != end || value < low || value > high) {
    throw Error(name + " " + text + ": expected an integer from " + std::to_string(low) + " to " +
                std::to_string(high));
  }
  return value;
}

uint64_t parse_memory(const std::string& name, const std::string& text) {
  try {
    const uint64_t bytes = parse_size(text);
    if (bytes > 0) return bytes;
  } catch (const Error& error) {
    throw Error(name + ": " + error.what());
  }
  throw Error(name + " " + text + ": expected a size above 0, like 512MiB");
}

}  // namespace dsat::trainer
