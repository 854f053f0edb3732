// Looks for each row's needle first and tries its regex only where the needle is.
#include "outputs/log_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

#include "dsat/error.h"

namespace dsat::host {

namespace {

// A limit for one compiled user pattern: about twenty thousand RE2 instructions.
constexpr int64_t kMostPatternBytes = 1 << 20;

struct Row {
  const FailurePattern* pattern;
  std::unique_ptr<const RE2> regex;  // nullptr: the needle is enough
};

const std::vector<Row>& rows() {
  static const auto compiled = [] {
    std::vector<Row> rows;
    for (const FailurePattern& pattern : failure_patterns()) {
      rows.push_back({&pattern, pattern.regex ? std::make_unique<RE2>(pattern.regex, RE2::Latin1) : nullptr});
    }
    return rows;
  }();
  return compiled;
}

// RE2 reads a view of its own type, which is not std::string_view on every system.
re2::StringPiece re2_view(std::string_view text) { return {text.data(), text.size()}; }

bool is_looked_for_in(Where where, LogStream stream) {
  if (where == Where::not_stdout) return stream != LogStream::standard_output;
  return where != Where::not_stderr || stream != LogStream::standard_error;
}

bool fits_row(const Row& row, std::string_view line) {
  if (line.find(row.pattern->needle) == std::string_view::npos) return false;
  return row.regex == nullptr || RE2::PartialMatch(re2_view(without_prefixes(line)), *row.regex);
}

bool is_of_memory(LineMeaning meaning) { return meaning <= LineMeaning::pinned_memory; }

// Recognises the lines of a traceback between its frames: the script's source, and the marks below it.
class QuotedSource {
 public:
  // Whether the innermost frame so far asks for pinned memory.
  bool pins() const { return pins_; }
  bool holds(std::string_view raw) {
    if (!in_frame_ && raw.find("File \"") == std::string_view::npos) return pins_ = false;
    const std::string_view line = without_prefixes(raw);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool is_frame = line.substr(indent, 6) == "File \"" && line.find("\", line ") != std::string_view::npos;
    const bool quoted = in_frame_ && indent > frame_indent_;
    in_frame_ = is_frame || quoted;
    if (is_frame) frame_indent_ = indent;
    if (in_frame_) pins_ = (quoted && pins_) || (has(line, "pin_memory") && !has(line, "pin_memory=False"));
    return quoted;
  }

 private:
  static bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

  bool in_frame_ = false, pins_ = false;
  size_t frame_indent_ = 0;
};

// Says which feature of other regular-expression syntaxes RE2 lacks; otherwise returns RE2's own message.
std::string lack_of(const RE2& regex) {
  const std::string& written = regex.error_arg();
  const bool looks = written.rfind("(?", 0) == 0;
  const bool refers_back =
      written.size() == 2 && written[0] == '\\' && std::isdigit(static_cast<unsigned char>(written[1]));
  if (looks) return fmt::format("RE2 has no '{}' (it looks neither ahead nor behind)", written);
  if (refers_back) return fmt::format("RE2 has no '{}' (it does not refer back to a group)", written);
  return regex.error();
}

std::shared_ptr<const RE2> compiled(const char* option, const std::string& pattern, const char* example) {
  const auto refuse = [&](const std::string& why) {
    return Error(fmt::format("{} '{}': {}: give a regular expression in RE2's syntax, such as '{}'", option, pattern,
                             why, example));
  };
  if (pattern.empty()) throw refuse("it is empty");
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostPatternBytes);
  auto regex = std::make_shared<const RE2>(pattern, options);
  switch (regex->error_code()) {
    case RE2::NoError:
      if (RE2::PartialMatch("", *regex)) throw refuse("it fits an empty line, so it fits every line");
      return regex;
    case RE2::ErrorMissingParen:
    case RE2::ErrorUnexpectedParen:
      throw refuse("its parentheses do not match");
    case RE2::ErrorMissingBracket:
      throw refuse("its brackets do not match");
    case RE2::ErrorPatternTooLarge:
      throw refuse("it is too large");
    case RE2::ErrorBadEscape:
    case RE2::ErrorBadPerlOp:
      throw refuse(lack_of(*regex));
    default:
      throw refuse(regex->error());
  }
}

}  // namespace

std::string_view without_prefixes(std::string_view line) {
  static const RE2 prefixes(fmt::format("(?:{})*", fmt::join(line_prefixes(), "|")), RE2::Latin1);
  re2::StringPiece rest = re2_view(line);
  RE2::Consume(&rest, prefixes);
  return {rest.data(), rest.size()};
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
  for (const std::string& pattern : oom_patterns) {
    own_.push_back(compiled("--oom-pattern", pattern, "my allocator .* exhausted"));
  }
}

std::shared_ptr<const RE2> compiled_number_pattern(const char* option, const std::string& pattern) {
  constexpr const char* kExample = "loss: ([-+.0-9a-z]+)";
  auto regex = compiled(option, pattern, kExample);
  const int groups = regex->NumberOfCapturingGroups();
  if (groups == 1) return regex;
  throw Error(fmt::format("{} '{}' has {}: put parentheses around the number alone, as in '{}'", option, pattern,
                          groups == 0 ? "no group" : "several groups, of which (?:...) would be none", kExample));
}

bool LineReader::fits_own_pattern(std::string_view line) const {
  const re2::StringPiece view = re2_view(line);
  return std::any_of(own_.begin(), own_.end(), [view](const auto& own) { return RE2::PartialMatch(view, *own); });
}

std::vector<Meanings> LineReader::read(const std::vector<std::string>& lines, LogStream stream) const {
  std::vector<Meanings> all;
  all.reserve(lines.size());
  QuotedSource source;
  for (const std::string& line : lines) {
    Meanings& meanings = all.emplace_back();
    if (source.holds(line)) continue;
    for (const Row& row : rows()) {
      const LineMeaning meaning = row.pattern->meaning;
      if (is_of_memory(meaning) && meanings.is_about_memory()) continue;
      if (is_looked_for_in(row.pattern->where, stream) && fits_row(row, line)) meanings.add(meaning);
    }
    // CUDA has one error for both memories. Only torch's message of a device says how much was wanted.
    if (source.pins() && meanings.has(LineMeaning::device_memory) && line.find("ried to allocate") == line.npos) {
      meanings = {};
      meanings.add(LineMeaning::pinned_memory);
    }
    if (fits_own_pattern(line)) {
      meanings = {};
      meanings.add(LineMeaning::device_memory);
    }
  }
  return all;
}

}  // namespace dsat::host
