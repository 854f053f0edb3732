// A recursive reader that gives JsonTree the events of a JSON reader. A word without quotes ends at its line's end,
// unless it is a number, true, false or null: then a comma, a bracket or a comment ends it too.
#include "hjson.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "json_tree.h"

namespace dsat::config {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_in(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : text_(text), tree_(text, source, &at_) {}

  std::optional<Json> read() {
    skip_blanks();
    const bool braces = peek() == '{';
    if (braces) ++at_;
    if (!members(braces)) return std::nullopt;
    skip_blanks();
    if (at_ != text_.size() || torn_) return std::nullopt;
    return tree_.take();
  }

 private:
  // The character at `at_` + `ahead`; NUL, which no text has, behind the end.
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_in(peek(), kBlanks)) {
        ++at_;
      } else if (peek() == '#' || (peek() == '/' && peek(1) == '/')) {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      } else if (peek() == '/' && peek(1) == '*') {
        const size_t end = text_.find("*/", at_ + 2);
        torn_ = end == std::string_view::npos;
        at_ = torn_ ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  // The members of an object behind its '{'. Only the outermost object may have no braces.
  bool members(bool braces) {
    tree_.start_object(0);
    skip_blanks();
    while (braces ? !take('}') : at_ < text_.size()) {
      std::string name;
      if (!key(name)) return false;
      tree_.key(name);
      skip_blanks();
      if (!take(':')) return false;
      skip_blanks();
      if (!value()) return false;
      end_element();
    }
    return tree_.end_object();
  }

  bool elements() {
    tree_.start_array(0);
    skip_blanks();
    while (!take(']')) {
      if (!value()) return false;
      end_element();
    }
    return tree_.end_array();
  }

  // One comma, or none, is between two elements or behind the last one.
  void end_element() {
    skip_blanks();
    if (take(',')) skip_blanks();
  }

  bool key(std::string& name) {
    if (peek() == '"' || peek() == '\'') return quoted(name);
    const size_t begin = at_;
    at_ = std::min(text_.find_first_of(":{}[],", at_), text_.size());
    const std::string_view written = text_.substr(begin, at_ - begin);
    name = written.substr(0, written.find_last_not_of(kBlanks) + 1);
    if (peek() != ':' || name.empty() || name.find_first_of(kBlanks) != std::string::npos) return false;
    at_ = begin + name.size();
    return true;
  }

  bool value() {
    if (take('{')) return members(true);
    if (take('[')) return elements();
    std::string text;
    if (text_.substr(at_, 3) == "'''") return lines(text) && tree_.string(text);
    if (peek() == '"' || peek() == '\'') return quoted(text) && tree_.string(text);
    return bare();
  }

  // A string in double or single quotes on one line.
  bool quoted(std::string& out) {
    const char quote = text_[at_++];
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) return ++at_ > 0;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
      } else if (++at_; !escaped(out)) {
        return false;
      }
    }
    return false;
  }

  // The character behind a backslash. `at_` stays at the last byte that belongs to it.
  bool escaped(std::string& out) {
    constexpr std::string_view kLetters = "\"'\\/bfnrt", kMeanings = "\"'\\/\b\f\n\r\t";
    const char c = peek();
    const size_t which = kLetters.find(c);
    if (c != '\0' && which != std::string_view::npos) {
      out += kMeanings[which];
      return true;
    }
    uint32_t code = 0, low = 0;
    if (c != 'u' || !hex(at_ + 1, code)) return false;
    at_ += 4;
    const bool is_high = (code & 0xFC00) == 0xD800;
    if (is_high && text_.substr(at_ + 1, 2) == "\\u" && hex(at_ + 3, low) && (low & 0xFC00) == 0xDC00) {
      code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
      at_ += 6;
    }
    constexpr uint32_t kReplacement = 0xFFFD;  // half of a pair is no character
    append_utf8(out, (code & 0xFFFFF800) == 0xD800 ? kReplacement : code);
    return true;
  }

  bool hex(size_t begin, uint32_t& code) const {
    const std::string_view digits = text_.substr(std::min(begin, text_.size()), 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    return digits.size() == 4 && error == std::errc() && end == digits.data() + 4;
  }

  // A string of several lines between '''. Its lines lose the indent of its first quote.
  bool lines(std::string& out) {
    const size_t newline = text_.substr(searched_, at_ - searched_).rfind('\n');
    if (newline != std::string_view::npos) line_begin_ = searched_ + newline + 1;
    searched_ = at_;
    const size_t indent = at_ - line_begin_;
    at_ += 3;
    skip_indent(text_.size());
    if (take('\n')) skip_indent(indent);
    while (at_ < text_.size()) {
      if (text_.substr(at_, 3) == "'''") {
        at_ += 3;
        if (!out.empty() && out.back() == '\n') out.pop_back();
        return true;
      }
      const char c = text_[at_++];
      if (c != '\r') out += c;
      if (c == '\n') skip_indent(indent);
    }
    return false;
  }

  void skip_indent(size_t most) {
    for (; most > 0 && is_in(peek(), " \t\r") && at_ < text_.size(); --most) ++at_;
  }

  // A value without quotes.
  bool bare() {
    if (at_ == text_.size() || is_in(peek(), "{}[],:")) return false;
    const std::string_view rest = text_.substr(at_);
    size_t end = std::min(rest.find_first_of("\r\n,}]#/"), rest.size());
    while (end < rest.size() && rest[end] == '/' && rest.substr(end + 1, 1) != "/" && rest.substr(end + 1, 1) != "*") {
      end = std::min(rest.find_first_of("\r\n,}]#/", end + 1), rest.size());
    }
    const std::string_view word = stripped(rest.substr(0, end));
    if (word == "null" || word == "true" || word == "false" || is_number(word)) {
      at_ += end;
      return scalar(word);
    }
    const std::string_view line = rest.substr(0, rest.find_first_of("\r\n"));
    at_ += line.size();
    std::string text(stripped(line));
    return tree_.string(text);
  }

  static bool is_number(std::string_view word) {
    size_t at = 0;
    const auto digits = [&] {
      const size_t begin = at;
      while (at < word.size() && is_digit(word[at])) ++at;
      return at - begin;
    };
    if (word.substr(0, 1) == "-") ++at;
    const bool zero = word.substr(at, 1) == "0";
    const size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (word.substr(at, 1) == "." && (++at, digits() == 0)) return false;
    if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
      ++at;
      if (at < word.size() && (word[at] == '-' || word[at] == '+')) ++at;
      if (digits() == 0) return false;
    }
    return at == word.size();
  }

  bool scalar(std::string_view word) {
    if (word == "null") return tree_.null();
    if (word == "true" || word == "false") return tree_.boolean(word == "true");
    const char* const end = word.data() + word.size();
    int64_t small = 0;
    uint64_t large = 0;
    if (const auto read = std::from_chars(word.data(), end, small); read.ec == std::errc() && read.ptr == end) {
      return small < 0 ? tree_.number_integer(small) : tree_.number_unsigned(static_cast<uint64_t>(small));
    }
    if (const auto read = std::from_chars(word.data(), end, large); read.ec == std::errc() && read.ptr == end) {
      return tree_.number_unsigned(large);
    }
    double number = 0;
    const auto read = std::from_chars(word.data(), end, number);
    return read.ec == std::errc() && std::isfinite(number) && tree_.number_float(number, "");
  }

  std::string_view text_;
  size_t at_ = 0;
  bool torn_ = false;                     // a comment is not closed
  size_t line_begin_ = 0, searched_ = 0;  // the line that has `searched_`
  JsonTree tree_;
};

}  // namespace

std::optional<Json> parse_hjson(std::string_view text, const std::string& source) {
  return Reader(text, source).read();
}

}  // namespace dsat::config
