// Reads UTF-8 with utfcpp, which rejects overlong forms and surrogates. The C library knows the width of a character.
// This file decides, one character at a time, what is printable, because other programs may print anything.
#include "dsat/base/utf8.h"

#include <fmt/format.h>
#include <locale.h>
#include <utf8cpp/utf8.h>
#include <wchar.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dsat {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kCutMark = "...";

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

// Selects the C library's table of widths on this thread, whatever the program's locale.
class Utf8Locale {
 public:
  Utf8Locale() {
    static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 != nullptr) before_ = uselocale(utf8);
  }
  ~Utf8Locale() {
    if (before_ != nullptr) uselocale(before_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

  // The width of the first character of `text`, which is removed.
  size_t take(std::string_view& text) const {
    const char* end = text.data();
    int width = 1;  // of an unknown character, or of a byte that is not UTF-8
    try {
      const uint32_t character = utf8::next(end, text.data() + text.size());
      if (before_ != nullptr) width = wcwidth(static_cast<wchar_t>(character));
    } catch (const utf8::exception&) {
      end = text.data() + 1;
    }
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return width < 0 ? 1 : static_cast<size_t>(width);
  }

 private:
  locale_t before_ = nullptr;
};

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

// The length of a terminal string, such as a window title, which ends with BEL or ESC \. Without an end only its two
// first bytes count, so that the rest of the line stays.
size_t string_length(std::string_view text) {
  const size_t end = text.find_first_of("\a\x1b", 2);
  if (end == std::string_view::npos) return 2;
  if (text[end] == '\a') return end + 1;
  return text.substr(end, 2) == "\x1b\\" ? end + 2 : 2;
}

// The length of the terminal escape sequence at the start of `text`; 0: none.
size_t escape_length(std::string_view text) {
  constexpr std::string_view kStringBegins = "]PX^_";
  if (text.size() < 2 || text[0] != '\x1b') return 0;
  if (kStringBegins.find(text[1]) != std::string_view::npos) return string_length(text);
  if (text[1] == '[') {
    size_t i = 2;
    while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
    return std::min(i + 1, text.size());
  }
  size_t i = 1;  // "ESC ( B" names a character set: bytes from ' ' to '/', then a last one
  while (i < text.size() && text[i] >= ' ' && text[i] <= '/') ++i;
  return i < text.size() && text[i] >= '0' && text[i] <= '~' ? i + 1 : i;
}

bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029; }

// Marks that reverse the order of text: a reader would see another text than the bytes say.
bool turns_direction(uint32_t c) { return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069); }

// Moves one character or escape sequence from `text` to `out`, if it is printable.
void take_printable(std::string_view& text, std::string& out) {
  size_t length = escape_length(text);
  if (length == 0) {
    const char* end = text.data();
    uint32_t character = 0;
    try {
      character = utf8::next(end, text.data() + text.size());
      length = static_cast<size_t>(end - text.data());
      if (character == '\t') out += ' ';
      if (!is_control(character) && !turns_direction(character)) out += text.substr(0, length);
    } catch (const utf8::exception&) {
      out += kReplacement;
      length = 1;
    }
  }
  text.remove_prefix(length);
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) { return utf8::find_invalid(text); }

std::string line_and_column(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", line, 1 + characters(before.substr(line_begin)));
}

size_t display_width(std::string_view text) {
  if (is_ascii(text)) return text.size();
  const Utf8Locale widths;
  size_t width = 0;
  while (!text.empty()) width += widths.take(text);
  return width;
}

std::string shortened(std::string_view text, size_t max_width) {
  if (display_width(text) <= max_width) return std::string(text);
  const std::string_view mark = kCutMark.substr(0, max_width);
  const Utf8Locale widths;
  std::string_view rest = text;
  size_t end = 0;
  for (size_t width = mark.size(); !rest.empty(); end = text.size() - rest.size()) {
    width += widths.take(rest);
    if (width > max_width) break;
  }
  return std::string(text.substr(0, end)).append(mark);
}

std::string printable_line(std::string_view text) {
  std::string out;
  while (!text.empty()) take_printable(text, out);
  const size_t end = out.find_last_not_of(' ');
  out.resize(end == std::string::npos ? 0 : end + 1);
  return out;
}

std::string printable_text(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += printable_line(text.substr(begin, end - begin));
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> printable_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string line = printable_line(text.substr(0, end));
    if (!line.empty()) lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace dsat
