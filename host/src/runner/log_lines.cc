// Looks for each row's needle first and tries its regex only where the needle is.
// The user's patterns are matched as whole lines by the library's breadth-first search, which never goes back.
#include "runner/log_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/error.h"

namespace dsat::host {

namespace {

// A message is shorter. Of a longer line the neighbourhood of the needle is read.
constexpr size_t kLineBytes = 2000;
constexpr size_t kBeforeNeedle = 500;

struct Row {
  const LogPattern* pattern;
  std::regex regex;
};

const std::vector<Row>& rows() {
  static const auto compiled = [] {
    std::vector<Row> rows;
    for (const LogPattern& pattern : log_patterns()) {
      rows.push_back({&pattern, std::regex(pattern.regex != nullptr ? pattern.regex : "", std::regex::nosubs)});
    }
    return rows;
  }();
  return compiled;
}

bool is_looked_for_in(Where where, LogStream stream) {
  if (where == Where::not_stdout) return stream != LogStream::standard_output;
  return where != Where::not_stderr || stream != LogStream::standard_error;
}

bool fits_row(const Row& row, std::string_view line) {
  const size_t at = line.find(row.pattern->needle);
  if (at == std::string_view::npos) return false;
  if (row.pattern->regex == nullptr) return true;
  if (line.size() > kLineBytes) {
    const size_t begin = at - std::min(at, kBeforeNeedle);
    line = line.substr(begin, kLineBytes);
  }
  line = without_prefixes(line);
  return std::regex_search(line.begin(), line.end(), row.regex);
}

// The lines of a traceback between its frames: the script's own source, and marks below it.
class QuotedSource {
 public:
  bool holds(std::string_view raw) {
    if (!in_frame_ && raw.find("File \"") == std::string_view::npos) return false;
    const std::string_view line = without_prefixes(raw);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool is_frame = line.substr(indent, 6) == "File \"" && line.find("\", line ") != std::string_view::npos;
    const bool quoted = in_frame_ && indent > frame_indent_;
    in_frame_ = is_frame || quoted;
    if (is_frame) frame_indent_ = indent;
    return quoted;
  }

 private:
  bool in_frame_ = false;
  size_t frame_indent_ = 0;
};

std::regex compiled(const std::string& pattern) {
  const auto refuse = [&](const std::string& why) {
    return Error(
        fmt::format("--oom-pattern '{}': {}: give a regular expression as ECMAScript has them, such as "
                    "'my allocator .* exhausted'",
                    pattern, why));
  };
  if (pattern.empty()) throw refuse("it is empty");
  const auto flags =
      std::regex::ECMAScript | std::regex::nosubs | std::regex::optimize | std::regex_constants::__polynomial;
  try {
    if (std::regex_match("", std::regex(pattern, flags))) throw refuse("it fits an empty line, so it fits every line");
    return std::regex("[\\s\\S]*(?:" + pattern + ")[\\s\\S]*", flags);
  } catch (const std::regex_error& error) {
    switch (error.code()) {
      case std::regex_constants::error_space:
      case std::regex_constants::error_stack:
        throw refuse("it is too large");
      case std::regex_constants::error_complexity:
        throw refuse("it refers back to a group, which can take for ever");
      case std::regex_constants::error_paren:
        throw refuse("its parentheses do not match");
      case std::regex_constants::error_brack:
        throw refuse("its brackets do not match");
      default:
        throw refuse("it is no regular expression");
    }
  }
}

}  // namespace

std::string_view without_prefixes(std::string_view line) {
  static const auto prefixes = [] {
    std::vector<std::regex> compiled;
    for (const char* text : line_prefixes()) compiled.emplace_back(text, std::regex::nosubs);
    return compiled;
  }();
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // a byte order mark of another encoding
  while (line.substr(0, kReplacement.size()) == kReplacement) line.remove_prefix(kReplacement.size());
  for (bool found = true; found;) {
    found = false;
    for (const std::regex& prefix : prefixes) {
      std::cmatch match;
      const bool starts = std::regex_search(line.data(), line.data() + std::min(line.size(), kBeforeNeedle), match,
                                            prefix, std::regex_constants::match_continuous);
      if (!starts || match.length() == 0) continue;
      line.remove_prefix(static_cast<size_t>(match.length()));
      found = true;
    }
  }
  return line;
}

void take_off_hosts(const std::vector<std::string>& hosts, std::vector<std::string>& lines) {
  if (hosts.empty()) return;
  for (std::string& line : lines) {
    const size_t end = line.find(':');
    if (end == std::string::npos || std::find(hosts.begin(), hosts.end(), line.substr(0, end)) == hosts.end()) continue;
    line.erase(0, std::min(line.size(), end + 1 + (line.compare(end, 2, ": ") == 0 ? 1 : 0)));
  }
  lines.erase(std::remove(lines.begin(), lines.end(), std::string()), lines.end());
}

LineReader::LineReader(const std::vector<std::string>& oom_patterns) {
  std::transform(oom_patterns.begin(), oom_patterns.end(), std::back_inserter(own_), compiled);
}

bool LineReader::fits_own_pattern(std::string_view line) const {
  for (; !line.empty(); line.remove_prefix(std::min(line.size(), kLineBytes))) {
    const std::string_view piece = line.substr(0, kLineBytes);
    const auto fits = [piece](const std::regex& own) { return std::regex_match(piece.begin(), piece.end(), own); };
    if (std::any_of(own_.begin(), own_.end(), fits)) return true;
  }
  return false;
}

std::vector<Meanings> LineReader::read(const std::vector<std::string>& lines, LogStream stream) const {
  std::vector<Meanings> all;
  all.reserve(lines.size());
  QuotedSource source;
  for (const std::string& line : lines) {
    Meanings& meanings = all.emplace_back();
    if (source.holds(line)) continue;
    for (const Row& row : rows()) {
      if (is_looked_for_in(row.pattern->where, stream) && fits_row(row, line)) meanings.add(row.pattern->meaning);
    }
    if (!own_.empty() && fits_own_pattern(line)) {
      meanings = {};
      meanings.add(LineMeaning::device_memory);
    }
  }
  return all;
}

}  // namespace dsat::host
