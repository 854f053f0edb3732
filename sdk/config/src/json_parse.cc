// parse() and load_file(): the library's parser with a SAX handler. The library's own tree builder silently keeps the
// last of two equal keys, calls NaN a syntax error and has no limit of depth. A set beside each object finds equal
// keys, because a lookup in an ordered object is linear.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dsat/base/files.h"
#include "dsat/base/utf8.h"
#include "dsat/config/json.h"

namespace dsat::config {
namespace {

constexpr size_t kMaxDepth = 100;
constexpr size_t kMaxKeys = 10000;  // of one object, because later lookups are linear

// Reads a text and counts the characters in `*consumed`, because SAX events carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  size_t* consumed_;
};

std::string fold(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; }

// The bare word (or single character) around `at`. `at` becomes its first character.
std::string_view word_at(std::string_view text, size_t& at) {
  at = std::min(at, text.size() - 1);
  if (!is_word(text[at])) return text.substr(at, 1);
  while (at > 0 && is_word(text[at - 1])) --at;
  size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

// Explains a word of Python that is no JSON; empty: the word is another one.
std::string explain_word(std::string_view word) {
  const std::string folded = fold(word);
  const std::string bare = !folded.empty() && folded[0] == '-' ? folded.substr(1) : folded;
  if (bare == "nan" || bare == "infinity" || bare == "inf") {
    return std::string(word) + " is no JSON value; give a finite number or leave the key out";
  }
  if (word != folded && (folded == "true" || folded == "false" || folded == "null")) {
    return std::string(word) + " is no JSON value; write " + folded;
  }
  if (folded == "none") return std::string(word) + " is no JSON value; write null";
  if (folded == "'") return "a single quote; JSON wants double quotes";
  return {};
}

class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view text, const std::string& source, const size_t* consumed)
      : text_(text), source_(source), consumed_(consumed) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no such thing in JSON text
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    keys_.back() = name;
    if (!seen_.back().insert(name).second) {
      // The parser calls this right after the closing quote.
      size_t begin = *consumed_ - 1;
      while (begin > 0 && (text_[begin - 1] != '"' || (begin > 1 && text_[begin - 2] == '\\'))) --begin;
      fail(begin - 1, "duplicate key " + path() + "; keep one of the two");
    }
    if (seen_.back().size() > kMaxKeys) fail(*consumed_ - 1, fmt::format("more than {} keys in one object", kMaxKeys));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    explain(position, error.what());
    return false;
  }

  [[noreturn]] void fail(size_t offset, const std::string& what) const {
    throw Error(source_ + ":" + line_and_column(text_, offset) + ": " + what);
  }

 private:
  template <typename Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  // Adds a value. The tree grows in its innermost open container only, so pointers to outer containers stay valid.
  Json* place(Json value) {
    if (open_.empty()) {
      root_begun_ = true;
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // Appends without a lookup, because key() has checked that the key is new.
    Json::object_t::Container& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(keys_.back(), std::move(value));
    return &members.back().second;
  }

  bool open(Json container) {
    if (open_.size() >= kMaxDepth) {
      fail(*consumed_ - 1, fmt::format("nested deeper than {} levels; flatten the configuration", kMaxDepth));
    }
    open_.push_back(place(std::move(container)));
    keys_.emplace_back();
    seen_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    seen_.pop_back();
    return true;
  }

  // The dotted key of the current value. A list's element is [index].
  std::string path() const {
    std::string out;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (open_[i]->is_array()) {
        const size_t size = open_[i]->size();
        const bool inside = i + 1 < open_.size();  // the last element is the open container itself
        out += fmt::format("[{}]", inside ? size - 1 : size);
      } else if (!keys_[i].empty()) {
        out += (out.empty() ? "" : ".") + keys_[i];
      }
    }
    return out;
  }

  // Replaces the library's report by one with advice. `position`: the number of bytes read, with the wrong token.
  [[noreturn]] void explain(size_t position, const std::string& report) const {
    const size_t last = position == 0 ? 0 : position - 1;
    if (report.find("out_of_range") != std::string::npos) {
      size_t begin = last;
      const std::string_view number = word_at(text_, begin);
      fail(begin, "the number " + std::string(number) + " is too large for a double");
    }
    if (report.find("invalid comment") != std::string::npos) fail(last, "a comment that is not closed");
    if (report.find("unexpected end of input") != std::string::npos) explain_end(last);
    if (report.find("invalid string") != std::string::npos) {
      fail(last, "in a string: " + after(report, "invalid string: "));
    }
    // The library reports a broken word at the character after it.
    const bool broken_word =
        report.find("invalid literal") != std::string::npos || report.find("invalid number") != std::string::npos;
    size_t begin = std::min(last, text_.size() - 1);
    if (broken_word && begin > 0 && !is_word(text_[begin]) && is_word(text_[begin - 1])) --begin;
    const std::string_view word = word_at(text_, begin);
    if (const std::string words = explain_word(word); !words.empty()) fail(begin, words);
    explain_token(begin, word, report);
  }

  [[noreturn]] void explain_end(size_t last) const {
    if (!root_begun_) throw Error(source_ + ": holds no JSON value, only comments or blanks");
    std::string what = "the text ends too early";
    if (!open_.empty()) what += std::string("; a ") + (open_.back()->is_array() ? "']'" : "'}'") + " is missing";
    fail(last, what);
  }

  [[noreturn]] void explain_token(size_t begin, std::string_view word, const std::string& report) const {
    std::string found = word == "\"" ? "a string" : "'" + std::string(word) + "'";
    if (word == "\"") {
      while (begin > 0 && text_[begin - 1] != '"' && text_[begin - 1] != '\n') --begin;
      if (begin > 0) --begin;
    }
    if (open_.empty() && root_begun_) fail(begin, found + " after the end of the value; remove it");
    if (report.find("parsing object separator") != std::string::npos) {
      fail(begin, found + " where ':' is wanted after the key " + path());
    }
    if (report.find("parsing object key") != std::string::npos) {
      fail(begin,
           found + " where a key in double quotes is wanted" + (word == "}" ? "; is there a comma too many?" : ""));
    }
    if (report.find("parsing value") != std::string::npos) {
      fail(begin, found + " where a value is wanted" + (word == "]" ? "; is there a comma too many?" : ""));
    }
    const bool list = !open_.empty() && open_.back()->is_array();
    const std::string behind = list ? " in a list" : " after the value of " + path();
    fail(begin, found + behind + " where ',' or " + (list ? "']'" : "'}'") + " is wanted; is a comma missing?");
  }

  // The part of the library's report from `mark` to "; last read".
  static std::string after(const std::string& report, const std::string& mark) {
    const size_t begin = report.find(mark);
    if (begin == std::string::npos) return report;
    const size_t from = begin + mark.size();
    return report.substr(from, report.find("; last read", from) - from);
  }

  std::string_view text_;
  const std::string& source_;
  const size_t* consumed_;
  Json root_;
  bool root_begun_ = false;
  std::vector<Json*> open_;                            // innermost last
  std::vector<std::string> keys_;                      // the current member of each open container
  std::vector<std::unordered_set<std::string>> seen_;  // the members so far of each open container
};

// Refuses text that the library would misread: other encodings, and NUL bytes, which end its text.
void check_bytes(std::string_view text, const std::string& source) {
  if (text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF") {
    throw Error(source + ": is UTF-16; save it as UTF-8");
  }
  const size_t invalid = first_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    throw Error(source + ":" + line_and_column(text, invalid) + ": a byte that is not UTF-8; save the file as UTF-8");
  }
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) throw Error(source + ":" + line_and_column(text, nul) + ": a NUL byte; remove it");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw Error(source + ": is empty; a JSON object is wanted");
  }
}

Json object_of(const FileText& text, const std::filesystem::path& file) {
  const std::string name = file.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(name + ": is a directory; name the configuration file in it");
  }
  if (!text.ok()) throw Error(fmt::format("{}: cannot be read: {}", name, text.problem));
  Json json = parse(text.bytes, name);
  if (!json.is_object()) {
    throw Error(fmt::format("{}: holds {}; an object in braces is wanted", name, json.type_name()));
  }
  return json;
}

}  // namespace

Json parse(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  check_bytes(text, source);
  size_t consumed = 0;
  TreeBuilder builder(text, source, &consumed);
  const CountingIterator begin(text.data(), &consumed);
  const CountingIterator end(text.data() + text.size(), &consumed);
  constexpr bool kStrict = true;  // only blanks and comments may follow the value
  constexpr bool kIgnoreComments = true;
  Json::sax_parse(begin, end, &builder, nlohmann::json::input_format_t::json, kStrict, kIgnoreComments);
  return builder.take();
}

Json load_file(const std::filesystem::path& file) { return object_of(try_read_file(file), file); }

Json load_input(const std::filesystem::path& file) { return object_of(try_read_input(file), file); }

}  // namespace dsat::config
