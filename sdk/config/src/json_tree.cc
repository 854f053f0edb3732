// Keeps equal keys, deep nesting and huge objects out of the tree, and replaces the library's report of an error by
// advice.
#include "json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "dsat/base/utf8.h"
#include "values.h"

namespace dsat::config {
namespace {

constexpr size_t kMaxDepth = 100;
constexpr size_t kMaxKeys = 10000;  // of one object, because later lookups are linear

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
  const std::string folded = lower_case(std::string(word));
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

// The part of the library's report from `mark` to "; last read".
std::string after(const std::string& report, const std::string& mark) {
  const size_t begin = report.find(mark);
  if (begin == std::string::npos) return report;
  const size_t from = begin + mark.size();
  return report.substr(from, report.find("; last read", from) - from);
}

}  // namespace

bool JsonTree::key(string_t& name) {
  keys_.back() = name;
  if (!seen_.back().insert(name).second) {
    // The readers call this right after the key, of which Hjson may have no quotes.
    size_t begin = *consumed_ - 1;
    const bool quoted = text_[begin] == '"';
    while (quoted && begin > 1 && (text_[begin - 1] != '"' || text_[begin - 2] == '\\')) --begin;
    begin -= std::min(begin, quoted ? 1 : name.size() - 1);
    fail(begin, "duplicate key " + path() + "; keep one of the two");
  }
  if (seen_.back().size() > kMaxKeys) fail(*consumed_ - 1, fmt::format("more than {} keys in one object", kMaxKeys));
  return true;
}

bool JsonTree::parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
  explain(position, error.what());
  return false;
}

void JsonTree::fail(size_t offset, const std::string& what) const {
  throw Error(source_ + ":" + line_and_column(text_, offset) + ": " + what);
}

// Adds a value. The tree grows in its innermost open container only, so pointers to outer containers stay valid.
Json* JsonTree::place(Json value) {
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

bool JsonTree::open(Json container) {
  if (open_.size() >= kMaxDepth) {
    fail(*consumed_ - 1, fmt::format("nested deeper than {} levels; flatten the configuration", kMaxDepth));
  }
  open_.push_back(place(std::move(container)));
  keys_.emplace_back();
  seen_.emplace_back();
  return true;
}

bool JsonTree::close() {
  open_.pop_back();
  keys_.pop_back();
  seen_.pop_back();
  return true;
}

// The dotted key of the current value. A list's element is [index].
std::string JsonTree::path() const {
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
void JsonTree::explain(size_t position, const std::string& report) const {
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

void JsonTree::explain_end(size_t last) const {
  if (!root_begun_) throw Error(source_ + ": holds no JSON value, only comments or blanks");
  std::string what = "the text ends too early";
  if (!open_.empty()) what += std::string("; a ") + (open_.back()->is_array() ? "']'" : "'}'") + " is missing";
  fail(last, what);
}

void JsonTree::explain_token(size_t begin, std::string_view word, const std::string& report) const {
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

}  // namespace dsat::config
