// Reads values with the parsers of dsat/base. A message has the form "OPTION TEXT: expected WHAT".
#include "dsat/cli/read_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "dsat/base/numbers.h"
#include "dsat/base/shell.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "dsat/error.h"

namespace dsat::cli_kit {
namespace {

[[noreturn]] void refuse(const std::string& shown, const std::string& text, const std::string& complaint) {
  throw Error(fmt::format("{} {}: {}", shown, printable_line(shell_quote(text)), complaint));
}

// "keep or copy", "a, b or c".
std::string any_of(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace

int64_t read_integer(const std::string& shown, const std::string& text, int64_t low, int64_t high,
                     const std::vector<std::string>& words) {
  if (const auto value = parse_integer(text, low, high)) return *value;
  using Limits = std::numeric_limits<int64_t>;
  const std::string range = high < Limits::max()  ? fmt::format(" from {} to {}", low, high)
                            : low > Limits::min() ? fmt::format(" of at least {}", low)
                                                  : "";
  const std::string others = words.empty() ? "" : fmt::format(", or {}", any_of(words));
  refuse(shown, text, fmt::format("expected an integer{}{}", range, others));
}

double read_number(const std::string& shown, const std::string& text, int64_t low) {
  const auto value = parse_number(text);
  if (value && *value >= static_cast<double>(low)) return *value;
  refuse(shown, text, fmt::format("expected a number of at least {}, such as 7.5e9", low));
}

uint64_t read_size(const std::string& shown, const std::string& text, uint64_t least) {
  uint64_t bytes = 0;
  try {
    bytes = parse_size(text);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", shown, printable_line(error.what())));
  }
  if (bytes >= std::max<uint64_t>(least, 1)) return bytes;
  if (bytes == 0) refuse(shown, text, "expected a size above 0, like 512MiB or 80GB");
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  if (bare) refuse(shown, text, fmt::format("a unit is missing: {}GB?", text));
  refuse(shown, text, fmt::format("expected a size of at least {} bytes, like 512MiB or 80GB", least));
}

std::chrono::milliseconds read_duration(const std::string& shown, const std::string& text) {
  try {
    const std::chrono::milliseconds value = parse_duration(text);
    if (value.count() > 0) return value;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", shown, printable_line(error.what())));
  }
  refuse(shown, text, "expected a duration above 0, like 90s, 15m or 2h");
}

size_t read_choice(const std::string& shown, const std::string& text, const std::vector<std::string>& words) {
  const auto it = std::find(words.begin(), words.end(), text);
  if (it == words.end()) refuse(shown, text, "choose " + any_of(words));
  return static_cast<size_t>(it - words.begin());
}

}  // namespace dsat::cli_kit
