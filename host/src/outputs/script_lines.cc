// One pass over the lines. An exception is no cause if its rank only lost its peer, or if Python ignored it. Loggers,
// progress bars and libraries still print while a script dies; so a line after a traceback's exception counts only if
// it reports an error itself.
#include "outputs/script_lines.h"

#include <algorithm>
#include <array>
#include <string_view>

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

}  // namespace

ScriptLines script_lines_of(const std::vector<std::string>& lines, const std::vector<Meanings>& meanings) {
  ScriptLines own;
  std::string last, exception, after_traceback;
  bool in_traceback = false, lost_peer = false;
  IgnoredException ignored;
  for (size_t i = 0; i < lines.size() && !meanings[i].has(LineMeaning::epilogue); ++i) {
    if (meanings[i].has(LineMeaning::launcher)) continue;
    const std::string& line = own.lines.emplace_back(lines[i]);
    if (meanings[i].has(LineMeaning::remark) || ignored.holds(line)) continue;
    last = line;
    lost_peer = meanings[i].has(LineMeaning::peer_lost);
    if (lost_peer) continue;
    in_traceback = in_traceback || has_text(line, "Traceback (most recent call last)");
    const bool is_cause = is_exception(line);
    if (is_cause) exception = line;
    if (in_traceback && (is_cause || (!after_traceback.empty() && reports_an_end(line)))) after_traceback = line;
  }
  own.tells_the_cause = !exception.empty();
  own.is_after_a_traceback = !after_traceback.empty();
  own.ends_with_it = last == after_traceback;
  if (own.is_after_a_traceback) {
    last = after_traceback;
  } else if (lost_peer && own.tells_the_cause) {
    last = exception;
  } else if (last.empty() && !own.lines.empty()) {
    last = own.lines.back();
  }
  own.last = std::string(without_prefixes(last));
  return own;
}

}  // namespace dsat::host
