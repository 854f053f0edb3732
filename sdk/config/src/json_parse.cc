// parse() and the loading of files: the library's parser builds a JsonTree. What users write is read as Hjson if it is
// no JSON.
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "dsat/base/files.h"
#include "dsat/base/utf8.h"
#include "dsat/config/json.h"
#include "hjson.h"
#include "json_tree.h"

namespace dsat::config {
namespace {

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

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
  return text;
}

using Parse = Json (*)(std::string_view, const std::string&);

Json object_of(const FileText& text, const std::filesystem::path& file, Parse parse_text) {
  const std::string name = file.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(name + ": is a directory; name the configuration file in it");
  }
  if (!text.ok()) throw Error(fmt::format("{}: cannot be read: {}", name, text.problem));
  Json json = parse_text(text.bytes, name);
  if (!json.is_object()) {
    throw Error(fmt::format("{}: holds {}; an object in braces is wanted", name, json.type_name()));
  }
  return json;
}

}  // namespace

Json parse(std::string_view text, const std::string& source) {
  text = without_byte_order_mark(text);
  check_bytes(text, source);
  size_t consumed = 0;
  JsonTree tree(text, source, &consumed);
  const CountingIterator begin(text.data(), &consumed);
  const CountingIterator end(text.data() + text.size(), &consumed);
  constexpr bool kStrict = true;  // only blanks and comments may follow the value
  constexpr bool kIgnoreComments = true;
  Json::sax_parse(begin, end, &tree, nlohmann::json::input_format_t::json, kStrict, kIgnoreComments);
  return tree.take();
}

// Every JSON text is Hjson too. If a text is neither, the error says what it lacks to be JSON.
Json parse_input(std::string_view text, const std::string& source) {
  try {
    return parse(text, source);
  } catch (const Error&) {
    text = without_byte_order_mark(text);
    check_bytes(text, source);
    if (std::optional<Json> json = parse_hjson(text, source)) return std::move(*json);
    throw;
  }
}

Json load_file(const std::filesystem::path& file) { return object_of(try_read_file(file), file, parse); }

Json load_input(const std::filesystem::path& file) { return object_of(try_read_input(file), file, parse_input); }

}  // namespace dsat::config
