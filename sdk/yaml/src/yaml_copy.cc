// Changes yaml-cpp's nodes, which keep how a scalar is spelled, and writes the changed entries anew between the lines
// of the others. The result is read again: a copy with any other value than the wanted ones is not handed out.
#include "dsat/yaml/yaml_copy.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <set>

#include "dsat/config/json.h"

namespace dsat {
namespace {

std::string quoted(const std::string& text) { return Json(text).dump(); }  // JSON's quotes and escapes are YAML's too

std::string scalar_text(const YAML::Node& node) {
  const std::string tag = node.Tag(), core = "tag:yaml.org,2002:";
  if (tag == "!" || tag == core + "str") return quoted(node.Scalar());
  if (tag.rfind(core, 0) == 0) return fmt::format("!!{} {}", tag.substr(core.size()), quoted(node.Scalar()));
  return node.Scalar().find('\n') == std::string::npos ? node.Scalar() : quoted(node.Scalar());
}

// The text behind "key:" or "-": a scalar in its line, a list or an object in lines of its own.
std::string value_text(const YAML::Node& node, size_t indentation) {
  const std::string begin = "\n" + std::string(indentation, ' ');
  if (node.IsMap() && node.size() > 0) {
    std::string text;
    for (const auto& entry : node) {
      text += begin + scalar_text(entry.first) + ":" + value_text(entry.second, indentation + 2);
    }
    return text;
  }
  if (node.IsSequence() && node.size() > 0) {
    std::string text;
    for (const YAML::Node& item : node) text += begin + "-" + value_text(item, indentation + 2);
    return text;
  }
  if (node.IsMap()) return " {}";
  if (node.IsSequence()) return " []";
  return node.IsScalar() ? " " + scalar_text(node) : "";
}

std::string entry_text(const YAML::Node& key, const YAML::Node& value) {
  return scalar_text(key) + ":" + value_text(value, 2) + "\n";
}

YAML::Node node_of(const Json& value) {
  YAML::Node node(value.is_string() ? value.get<std::string>() : value.dump());
  node.SetTag(value.is_string() ? "!" : "?");
  return node;
}

void change(YAML::Node node, const std::string& key, const Json& value) {
  const size_t dot = key.find('.');
  const std::string name = key.substr(0, dot);
  if (dot != std::string::npos) {
    change(node[name], key.substr(dot + 1), value);
  } else if (value.is_null()) {
    node.remove(name);
  } else {
    node[name] = node_of(value);
  }
}

bool is_blank_or_comment(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t\r\n");
  return begin == std::string::npos || line[begin] == '#';
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  if (!lines.empty() && lines.back().back() != '\n') lines.back() += '\n';
  return lines;
}

// Writes the changed entries anew and keeps the lines of the others; nullopt: an entry does not begin a line.
std::optional<std::string> with_kept_lines(const std::string& text, const YAML::Node& before, const YAML::Node& after,
                                           const std::set<std::string>& changed) {
  std::vector<std::string> lines = lines_of(text);
  std::vector<std::pair<size_t, std::string>> entries;
  for (const auto& entry : before) {
    const YAML::Mark place = entry.first.Mark();
    const bool is_next = entries.empty() || static_cast<size_t>(place.line) > entries.back().first;
    if (place.column != 0 || !is_next) return std::nullopt;
    entries.emplace_back(place.line, entry.first.Scalar());
  }
  if (entries.empty()) return std::nullopt;
  std::string result;
  for (size_t i = 0; i < entries.front().first; ++i) result += lines[i];
  std::set<std::string> open = changed;
  for (size_t k = 0; k < entries.size(); ++k) {
    const auto& [begin, name] = entries[k];
    const size_t end = k + 1 < entries.size() ? entries[k + 1].first : lines.size();
    size_t i = begin;
    if (open.erase(name) > 0) {
      for (i = end; i > begin + 1 && is_blank_or_comment(lines[i - 1]);) --i;  // these belong to the next entry
      for (const auto& entry : after) {
        if (entry.first.Scalar() == name) result += entry_text(entry.first, entry.second);
      }
    }
    for (; i < end; ++i) result += lines[i];
  }
  for (const auto& entry : after) {
    if (open.count(entry.first.Scalar()) > 0) result += entry_text(entry.first, entry.second);
  }
  return result;
}

std::string written_anew(const YAML::Node& root) {
  std::string text;
  for (const auto& entry : root) text += entry_text(entry.first, entry.second);
  return text.empty() ? "{}\n" : text;
}

}  // namespace

std::string YamlCopy::text() const {
  const Error cannot(fmt::format(
      "{}: a trial needs other values there, and they cannot be changed: write them without anchors and aliases",
      file_.string()));
  Json wanted = YamlFile::parse(text_, file_).root();
  for (const auto& [key, value] : changes_) {
    const std::string parent = key.substr(0, key.rfind('.'));
    const Json* around = parent == key ? nullptr : config::find(wanted, parent);
    if (around != nullptr && !around->is_object() && !around->is_null()) throw cannot;
    if (value.is_null()) {
      config::erase(wanted, key);
    } else {
      config::set(wanted, key, value);
    }
  }
  if (Json::accept(text_)) return config::text_of(wanted, 2) + "\n";  // its readers may know JSON alone
  const auto is_wanted = [&](const std::string& text) {
    try {
      return YamlFile::parse(text, file_).root() == wanted;
    } catch (const Error&) {
      return false;
    }
  };
  try {
    const YAML::Node before = YAML::Load(text_);
    const YAML::Node after = YAML::Load(text_);
    std::set<std::string> changed;
    for (const auto& [key, value] : changes_) {
      change(after, key, value);
      changed.insert(key.substr(0, key.find('.')));
    }
    if (auto kept = with_kept_lines(text_, before, after, changed); kept && is_wanted(*kept)) return *kept;
    if (std::string anew = written_anew(after); is_wanted(anew)) return anew;
  } catch (const YAML::Exception&) {  // a value of another kind than the change needs
  }
  throw cannot;
}

}  // namespace dsat
