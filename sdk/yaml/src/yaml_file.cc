// Parses with yaml-cpp and converts nodes to JSON values by hand, because that library knows no types of scalars. Its
// errors are put in dsat's words, with the place in the file. A first pass over its events counts documents, levels and
// values without making nodes: for some files the library finds them without end.
#include "dsat/yaml/yaml_file.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <vector>

#include "dsat/base/files.h"
#include "dsat/base/utf8.h"
#include "dsat/config/json.h"

namespace dsat {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 100;
constexpr int kMaxNodes = 100'000;  // a small file can stand for billions, by aliases of aliases
constexpr size_t kMaxYamlBytes = size_t{4} << 20;
constexpr const char* kTooDeep = "more than 100 levels: nest fewer";

std::string place_text(const fs::path& file, int line, int column) {
  return fmt::format("{}:{}:{}", file.string(), line, column);
}

bool one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// An integer in `base`, with "_" between digits; nullopt: no integer, or too large.
template <class Integer>
std::optional<Integer> integer_of(std::string text, int base) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const size_t sign = !text.empty() && text[0] == '+' ? 1 : 0;
  Integer value = 0;
  const auto [stop, error] = std::from_chars(text.data() + sign, text.data() + text.size(), value, base);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> number_of(const std::string& text) {
  const bool begins_well = !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string::npos &&
                           text.find_first_of("0123456789") != std::string::npos;
  if (!begins_well) return std::nullopt;
  const size_t sign = text[0] == '+' ? 1 : 0;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
  if (stop != text.data() + text.size()) return std::nullopt;
  return error == std::errc() ? value : HUGE_VAL;
}

// The value of a plain scalar in YAML's core schema.
Json plain_value(const std::string& text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (one_of(text, {"true", "True", "TRUE"})) return true;
  if (one_of(text, {"false", "False", "FALSE"})) return false;
  if (text.rfind("0x", 0) == 0) {
    if (const auto value = integer_of<int64_t>(text.substr(2), 16)) return *value;
  }
  if (text.rfind("0o", 0) == 0) {
    if (const auto value = integer_of<int64_t>(text.substr(2), 8)) return *value;
  }
  if (text[0] != '_') {
    if (const auto value = integer_of<int64_t>(text, 10)) return *value;
    if (const auto value = integer_of<uint64_t>(text, 10)) return *value;
  }
  if (const auto value = number_of(text)) return *value;
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return std::nan("");
  if (one_of(text, {".inf", "-.inf", "+.inf", ".Inf", "-.Inf", ".INF", "-.INF"})) return HUGE_VAL;
  return text;
}

class NodeConverter {
 public:
  NodeConverter(const fs::path& file, std::map<std::string, YamlFile::Position>& places, bool as_spelled)
      : file_(file), places_(places), as_spelled_(as_spelled) {}

  Json convert(const YAML::Node& node, const std::string& key) {
    if (++nodes_ > kMaxNodes) fail(node.Mark(), "aliases expand to more than 100,000 values: write the values out");
    for (const YAML::Node& outer : open_) {
      if (outer.is(node)) fail(node.Mark(), "an alias contains itself: break the loop of anchors");
    }
    if (open_.size() >= kMaxDepth) fail(node.Mark(), kTooDeep);
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence:
      case YAML::NodeType::Map: {
        open_.push_back(node);
        Json result = node.IsMap() ? map(node, key) : sequence(node, key);
        open_.pop_back();
        return result;
      }
      default:
        return nullptr;
    }
  }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& complaint) const {
    throw Error(fmt::format("{}: {}", place_text(file_, mark.line + 1, mark.column + 1), complaint));
  }

  Json scalar(const YAML::Node& node) const {
    const std::string tag = node.Tag();
    const std::string core = "tag:yaml.org,2002:";
    if (tag == "!" || tag == core + "str") return node.Scalar();  // quoted, or marked as text
    const bool known = tag.empty() || tag == "?" || tag.rfind(core, 0) == 0;
    if (!known) fail(node.Mark(), fmt::format("unknown tag {}: leave it out", tag));
    Json value = plain_value(node.Scalar());
    if (value.is_number_float() && !std::isfinite(value.get<double>())) {
      fail(node.Mark(), fmt::format("'{}' is not a finite number: write a finite one", node.Scalar()));
    }
    return as_spelled_ && !value.is_null() ? Json(node.Scalar()) : value;
  }

  Json sequence(const YAML::Node& node, const std::string& key) {
    Json list = Json::array();
    for (const YAML::Node& item : node) list.push_back(convert(item, key));
    return list;
  }

  Json map(const YAML::Node& node, const std::string& prefix) {
    Json object = Json::object();
    Json merged = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) fail(entry.first.Mark(), "a key must be a name");
      const std::string name = entry.first.Scalar();
      const std::string key = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
      if (name == "<<" && entry.first.Tag() == "?") {
        merge(entry.second, key, merged);
        continue;
      }
      if (object.contains(name)) fail(entry.first.Mark(), fmt::format("the key '{}' is there twice: keep one", key));
      places_.insert_or_assign(key, YamlFile::Position{entry.first.Mark().line + 1, entry.first.Mark().column + 1});
      object[name] = convert(entry.second, key);
    }
    for (const auto& item : merged.items()) {
      if (!object.contains(item.key())) object[item.key()] = item.value();
    }
    return object;
  }

  // Merges "<<: *defaults", or a list of such. The first object with a key gives its value.
  void merge(const YAML::Node& node, const std::string& key, Json& merged) {
    Json value = convert(node, key);
    if (!value.is_array()) value = Json::array({std::move(value)});
    for (const Json& part : value) {
      if (!part.is_object()) fail(node.Mark(), "<< merges objects only");
      for (const auto& item : part.items()) {
        if (!merged.contains(item.key())) merged[item.key()] = item.value();
      }
    }
  }

  const fs::path& file_;
  std::map<std::string, YamlFile::Position>& places_;
  bool as_spelled_;               // scalars stay texts
  std::vector<YAML::Node> open_;  // the objects and lists around the current node
  int nodes_ = 0;
};

std::string read_text(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error))
    throw Error(fmt::format("{}: is a folder: name the experiment file", file.string()));
  if (!fs::exists(file, error)) throw Error(fmt::format("{}: no such file", file.string()));
  FileText text = try_read_file(file, kMaxYamlBytes);
  if (!text.ok()) throw Error(fmt::format("{}: cannot be read: {}", file.string(), text.problem));
  return std::move(text.bytes);
}

// An error of yaml-cpp in words for the author of the file. The library's message constants identify it.
std::string complaint_about(const YAML::Exception& error) {
  const auto begins = [&](const std::string& text) { return error.msg.rfind(text, 0) == 0; };
  if (begins(YAML::ErrorMsg::UNKNOWN_ANCHOR)) return "an alias names an anchor that is not defined above it";
  if (begins(YAML::ErrorMsg::EOF_IN_SCALAR)) return "a quote is not closed";
  if (begins(YAML::ErrorMsg::END_OF_MAP_FLOW) || begins(YAML::ErrorMsg::END_OF_SEQ_FLOW) ||
      begins(YAML::ErrorMsg::FLOW_END)) {
    return "a bracket does not match: check { } and [ ]";
  }
  if (begins(YAML::ErrorMsg::INVALID_ALIAS) || begins(YAML::ErrorMsg::ALIAS_NOT_FOUND)) return "an alias has no name";
  if (begins(YAML::ErrorMsg::INVALID_ESCAPE)) return "an unknown escape: write a backslash as two";
  if (begins(YAML::ErrorMsg::BLOCK_ENTRY) || begins(YAML::ErrorMsg::END_OF_SEQ)) {
    return "a list is not indented as one: align its dashes";
  }
  return "not YAML: check the indentation, the colons and the quotes";
}

// Counts the parser's events, and stops the parser at the bounds of an experiment file.
class Bounds final : public YAML::EventHandler {
 public:
  explicit Bounds(const fs::path& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) {
      first_ = mark.pos;
    } else if (mark.pos == first_) {  // the parser makes no progress
      fail(mark, "not YAML: check for a comma or a bracket that begins the line");
    } else {
      fail(mark, "a second document begins: keep one");
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& complaint) const {
    throw Error(fmt::format("{}: {}", place_text(file_, mark.line + 1, mark.column + 1), complaint));
  }
  void count(const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) fail(mark, fmt::format("more than {} values: use fewer", kMaxNodes));
  }
  void enter(const YAML::Mark& mark) {
    count(mark);
    if (++depth_ > kMaxDepth) fail(mark, kTooDeep);
  }

  const fs::path& file_;
  int documents_ = 0, nodes_ = 0, depth_ = 0, first_ = 0;
};

void check_bounds(const std::string& text, const fs::path& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Bounds bounds(file);
  while (parser.HandleNextDocument(bounds)) {
  }
}

// Does a block scalar begin at the end of this line, as in "entrypoint: >-"?
bool opens_block_scalar(const std::string& line) {
  const size_t sign = line.find_last_of("|>");
  if (sign == std::string::npos || sign == 0 || line[sign - 1] != ' ') return false;
  const size_t rest = line.find_first_not_of("+-0123456789", sign + 1);
  const size_t end = line.find_first_not_of(" \t\r", std::min(rest, line.size()));
  return end == std::string::npos || (end > rest && line[end] == '#');
}

// Refuses tabs as indentation, since their width depends on the reader. They are allowed in JSON, and in the lines of a
// block scalar, which are indented more than its key.
void refuse_tabs(const std::string& text, const fs::path& file) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return;
  size_t scalar_beyond = std::string::npos;
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t content = std::min(text.find_first_not_of(" \t\r", begin), end);
    const size_t tab = text.find('\t', begin);
    const size_t indent = text.find_first_not_of(' ', begin) - begin;
    const bool in_scalar = scalar_beyond != std::string::npos && (content == end || indent > scalar_beyond);
    if (!in_scalar) {
      scalar_beyond = opens_block_scalar(text.substr(begin, end - begin)) ? indent : std::string::npos;
    }
    if (content < end && text[content] != '#' && tab < content && !in_scalar) {
      throw Error(fmt::format("{}: a tab indents this line: YAML takes spaces only",
                              place_text(file, line, static_cast<int>(tab - begin) + 1)));
    }
    begin = end + 1;
  }
}

const Json* unless_null(const Json* value) { return value == nullptr || value->is_null() ? nullptr : value; }

}  // namespace

YamlFile YamlFile::load(const fs::path& file) { return parse(read_text(file), file); }

YamlFile YamlFile::parse(const std::string& text, const fs::path& file) {
  if (text.find('\0') != std::string::npos || first_invalid_utf8(text) != std::string::npos) {
    throw Error(fmt::format("{}: is not UTF-8 text: save it as UTF-8", file.string()));
  }
  refuse_tabs(text, file);
  YamlFile result;
  result.file_ = file;
  try {
    check_bounds(text, file);
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull()) throw Error(fmt::format("{}: is empty", file.string()));
    result.root_ = NodeConverter(file, result.places_, false).convert(document, "");
    result.spelled_root_ = NodeConverter(file, result.places_, true).convert(document, "");
  } catch (const YAML::Exception& error) {
    throw Error(
        fmt::format("{}: {}", place_text(file, error.mark.line + 1, error.mark.column + 1), complaint_about(error)));
  }
  if (!result.root_.is_object()) {
    throw Error(fmt::format("{}: must hold keys and values (\"name: ...\") at its top", file.string()));
  }
  return result;
}

std::string YamlFile::where(const std::string& key) const {
  for (std::string at = key;; at.erase(at.rfind('.'))) {
    if (const auto it = places_.find(at); it != places_.end()) {
      return place_text(file_, it->second.line, it->second.column);
    }
    if (at.find('.') == std::string::npos) return file_.string();
  }
}

void YamlFile::refuse(const std::string& key, const std::string& complaint) const {
  throw Error(fmt::format("{}: {} {}", where(key), key, complaint));
}

const Json* YamlFile::find(const std::string& key) const { return unless_null(config::find(root_, key)); }

const Json* YamlFile::find_spelled(const std::string& key) const {
  return unless_null(config::find(spelled_root_, key));
}

const Json* YamlFile::find_object(const std::string& key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_object())
    refuse(key, fmt::format("must hold keys and values, it has {}", value->dump()));
  return value;
}

std::string YamlFile::text(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return "";
  if (value->is_structured()) refuse(key, fmt::format("must be a text, it has {}", value->dump()));
  return *find_spelled(key);
}

}  // namespace dsat
