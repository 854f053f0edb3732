// Splits patterns and paths at slashes and matches them name by name: fnmatch() for a name, every depth for "**".
#include "runner/ignore_rules.h"

#include <fnmatch.h>

#include <algorithm>

namespace dsat::host {
namespace {

using Names = std::vector<std::string>;
using Name = Names::const_iterator;

Names names_of(std::string_view path) {
  Names names;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) names.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return names;
}

bool matches(Name pattern, Name pattern_end, Name name, Name name_end) {
  if (pattern == pattern_end) return name == name_end;
  if (*pattern == "**") {
    // At the end, "**" matches what lies inside a folder, not the folder.
    if (pattern + 1 == pattern_end) return name != name_end;
    for (Name from = name;; ++from) {
      if (matches(pattern + 1, pattern_end, from, name_end)) return true;
      if (from == name_end) return false;
    }
  }
  return name != name_end && fnmatch(pattern->c_str(), name->c_str(), 0) == 0 &&
         matches(pattern + 1, pattern_end, name + 1, name_end);
}

}  // namespace

IgnoreRules::IgnoreRules(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && std::string_view(" \t\r").find(line.back()) != std::string_view::npos) {
      line.remove_suffix(1);
    }
    if (line.empty() || line[0] == '#') continue;
    Rule rule;
    if (line[0] == '!') {
      rule.takes_in = true;
      line.remove_prefix(1);
    }
    if (!line.empty() && line.back() == '/') {
      rule.folders_only = true;
      line.remove_suffix(1);
    }
    const bool tied = line.find('/') != std::string_view::npos;
    rule.names = names_of(line);
    if (rule.names.empty()) continue;
    if (!tied) rule.names.insert(rule.names.begin(), "**");
    rules_.push_back(std::move(rule));
  }
}

bool IgnoreRules::ignores(const std::filesystem::path& path, bool is_folder) const {
  const Names names = names_of(path.generic_string());
  const auto decides = [&](const Rule& rule) {
    return (is_folder || !rule.folders_only) &&
           matches(rule.names.begin(), rule.names.end(), names.begin(), names.end());
  };
  const auto last = std::find_if(rules_.rbegin(), rules_.rend(), decides);
  return last != rules_.rend() && !last->takes_in;
}

}  // namespace dsat::host
