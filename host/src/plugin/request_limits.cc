// Checks size and depth before parsing, since deep JSON parses but would overflow recursive functions later.
#include "plugin/request_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/base/utf8.h"

namespace dsat::host {

size_t depth_of(std::string_view json) {
  size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

std::optional<Json> bounded_object(dsat_str text, std::string& why) {
  if (text.data == nullptr) {
    why = "is NULL";
  } else if (text.size > kMaxJsonBytes) {
    why = fmt::format("has {} bytes, more than {}", text.size, kMaxJsonBytes);
  } else if (depth_of(detail::view(text)) > kMaxJsonDepth) {
    why = fmt::format("is nested more than {} deep", kMaxJsonDepth);
  } else {
    Json parsed = Json::parse(detail::view(text), nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object()) return parsed;
    why = "is not a JSON object";
  }
  return std::nullopt;
}

bool LogLimit::admits(std::string& line) {
  if (lines_ > kMaxLogLines) return false;
  if (++lines_ > kMaxLogLines) {
    line = fmt::format("the plugin has logged {} lines in one call: further lines are left out", kMaxLogLines);
  }
  return true;
}

std::string bounded_line(dsat_str text) {
  if (text.data == nullptr) return {};
  const std::string_view whole(text.data, std::min(text.size, kMaxLineBytes));
  std::string line;
  for (const std::string& part : printable_lines(whole)) line += (line.empty() ? "" : " ") + part;
  if (text.size > kMaxLineBytes) line += " ...";
  return line;
}

}  // namespace dsat::host
