// One pass over the lines. An exception is no cause if its rank only lost its peer, or if Python ignored it. Loggers,
// progress bars and libraries still print while a script dies; so a line after a traceback's exception counts only if
// it reports an error itself. A line that says too little is read on, or gets the source that raised it.
#include "outputs/script_lines.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "dsat/base/affix.h"
#include "outputs/launcher_failure.h"

namespace dsat::host {

namespace {

bool has_text(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Recognises "KeyError: 'labels'", "torch.cuda.OutOfMemoryError", "AssertionError".
bool is_exception(std::string_view line) {
  if (!has_text(line, "Error") && !has_text(line, "Exception")) return false;
  constexpr std::string_view kNameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
  const std::string_view text = without_prefixes(line);
  const size_t end = text.find_first_not_of(kNameCharacters);
  const std::string_view name = text.substr(0, std::min(end, text.size()));
  return (end == std::string_view::npos || text[end] == ':') &&
         (has_text(name, "Error") || has_text(name, "Exception"));
}

// Recognises the end of a process without a Python exception.
bool reports_an_end(std::string_view line) {
  constexpr std::array<std::string_view, 7> kEnds{
      "terminate called", "Fatal Python error", "Segmentation fault", "core dumped", "Aborted", "Killed", "rror: "};
  const std::string_view text = without_prefixes(line);
  if (text.empty() || text.front() == ' ') return false;  // a traceback's source
  return std::any_of(kEnds.begin(), kEnds.end(), [text](std::string_view end) { return has_text(text, end); });
}

// Skips what Python prints about an exception in a destructor: a heading, perhaps a traceback, the exception. Such an
// exception ends nothing. It often follows a failure, when a destructor finds a half-built object, such as DeepSpeed's
// of an optimizer that could not be built.
class IgnoredException {
 public:
  bool holds(std::string_view line) {
    constexpr std::string_view kHeading = "Exception ignored ";
    const std::string_view text = without_prefixes(line);
    if (text.substr(0, kHeading.size()) == kHeading) return is_open_ = true;
    if (!is_open_) return false;
    is_open_ = text.empty() || text.front() == ' ' || has_text(text, "Traceback (most recent call last)");
    return true;
  }

 private:
  bool is_open_ = false;  // the exception's last line is still to come
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

std::string_view prefix_of(std::string_view line) {
  return line.substr(0, line.size() - without_prefixes(line).size());
}

// The lines of one log around a message. Other ranks' lines may stand between those of one rank; their prefix differs.
class Around {
 public:
  Around(const std::vector<std::string>& lines, size_t at) : lines_(lines), at_(at), prefix_(prefix_of(lines[at])) {}
  size_t at() const { return at_; }

  // Moves to the next line of the same rank, and returns it without its prefix; nullopt: the message has ended there.
  std::optional<std::string_view> next() {
    for (size_t i = at_ + 1; i < lines_.size(); ++i) {
      if (prefix_of(lines_[i]) != prefix_) continue;
      const std::string_view text = without_prefixes(lines_[i]);
      if (has_text(text, "Traceback (most recent call last)") || has_text(text, " exception, another exception") ||
          has_text(text, "The above exception")) {
        return std::nullopt;
      }
      at_ = i;
      return trimmed(text);
    }
    return std::nullopt;
  }

  // Returns the source line that raised the exception, from the traceback above it; "": there is none.
  std::string_view source() const {
    for (size_t i = at_; i-- > 0;) {
      if (prefix_of(lines_[i]) != prefix_) continue;
      const std::string_view text = without_prefixes(lines_[i]);
      const std::string_view words = trimmed(text);
      if (text.empty() || text.front() != ' ' || starts_with(words, "File \"")) return "";
      if (words.find_first_not_of("^~ ") != std::string_view::npos) return words;
    }
    return "";
  }

 private:
  const std::vector<std::string>& lines_;
  size_t at_;
  std::string_view prefix_;
};

// Returns the message at `at` as far as it takes to say something: pydantic names the key in the line after its heading
// and the rule in the next, NCCL has its own words below "Last error:", and "raised:" or "AssertionError:" stand before
// what they announce.
struct Message {
  std::string text;
  size_t end;  // its last line
};
Message message_at(const std::vector<std::string>& lines, size_t at) {
  constexpr int kMostLines = 4;
  static const re2::RE2 heading(R"(\d+ validation errors? for [\w.]+$)", re2::RE2::Latin1);
  std::string text(without_prefixes(lines[at]));
  Around around(lines, at);
  const auto read_on = [&](const char* between) {
    const auto next = around.next();
    if (next) text.append(between).append(*next);
    return next.has_value();
  };
  if (is_exception(text) && text.find(':') == std::string::npos) {
    const std::string_view source = around.source();
    if (!source.empty() && !has_text(source, text)) text.append(" (").append(source).append(")");
  } else if (re2::RE2::PartialMatch(text, heading)) {
    if (read_on(": ")) read_on(": ");
  } else if (starts_with(text, "nccl") && around.next() == "Last error:") {
    read_on(" Last error: ");
  } else {
    for (int i = 0; i < kMostLines && ends_with(trimmed(text), ":"); ++i) {
      text.resize(text.find_last_not_of(" \t") + 1);
      if (!read_on(" ")) break;
    }
  }
  return {std::move(text), around.at()};
}

}  // namespace

ScriptLines script_lines_of(const std::vector<std::string>& lines, const std::vector<Meanings>& meanings) {
  ScriptLines own;
  const std::vector<bool> are_launchers = lines_of_launchers(lines);
  std::optional<size_t> last, exception, after_traceback;  // indices in own.lines
  bool in_traceback = false, lost_peer = false;
  IgnoredException ignored;
  for (size_t i = 0; i < lines.size() && !meanings[i].has(LineMeaning::epilogue); ++i) {
    if (meanings[i].has(LineMeaning::launcher) || are_launchers[i]) continue;
    const std::string& line = own.lines.emplace_back(lines[i]);
    const size_t at = own.lines.size() - 1;
    if (meanings[i].has(LineMeaning::remark) || ignored.holds(line)) continue;
    if (!after_traceback || without_prefixes(line).substr(0, 1) != " ") last = at;  // else more of the exception
    lost_peer = meanings[i].has(LineMeaning::peer_lost);
    if (lost_peer) continue;
    in_traceback = in_traceback || has_text(line, "Traceback (most recent call last)");
    const bool is_cause = is_exception(line);
    if (is_cause) exception = at;
    if (in_traceback && (is_cause || (after_traceback && reports_an_end(line)))) after_traceback = at;
  }
  own.tells_the_cause = exception.has_value();
  own.is_after_a_traceback = after_traceback.has_value();
  const std::optional<size_t> end = last;
  if (own.is_after_a_traceback) {
    last = after_traceback;
  } else if (lost_peer && own.tells_the_cause) {
    last = exception;
  } else if (!last && !own.lines.empty()) {
    last = own.lines.size() - 1;
  }
  if (!last) return own;
  Message message = message_at(own.lines, *last);
  own.last = std::move(message.text);
  own.ends_with_it = own.is_after_a_traceback && end <= message.end;
  return own;
}

}  // namespace dsat::host
