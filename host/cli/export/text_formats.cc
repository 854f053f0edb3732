// CSV, JSON and JSON lines: the page's document as a table with a column for each leaf, as one text, or with one line
// for each trial. A cell is empty if the trial has no such leaf.
#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "dsat/base/utf8.h"
#include "dsat/config/json.h"
#include "export/flat_study.h"
#include "export/formats.h"

namespace dsat::cli {
namespace {

std::string cell(const std::string& raw) {
  const std::string text = printable_line(raw);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Spreadsheets take a text that begins so for a formula.
std::string no_formula(const std::string& text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos ? "'" + text : text;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + cell(cells[i]);
  return line + "\r\n";
}

}  // namespace

std::string csv_of(const host::StudyFacts& facts) {
  const Json document = host::to_json(facts);
  std::vector<std::string> header;
  std::unordered_map<std::string, size_t> columns;
  std::vector<std::vector<std::string>> rows;
  for (const Json& trial : document.at("trials")) {
    std::vector<std::string> row(header.size());
    std::set<std::string> names;  // a key with a dot may equal the dotted name of another leaf
    for (const Leaf& leaf : leaves_of(trial)) {
      const std::string name = unique_name(no_formula(leaf.first), names);
      const auto [it, is_new] = columns.try_emplace(name, header.size());
      if (is_new) header.push_back(name);
      row.resize(std::max(row.size(), header.size()));
      const std::string text = leaf_text(leaf.second);
      row[it->second] = leaf.second.is_string() ? no_formula(text) : text;
    }
    rows.push_back(std::move(row));
  }
  std::string text = csv_line(header);
  for (std::vector<std::string>& row : rows) {
    row.resize(header.size());
    text += csv_line(row);
  }
  return text;
}

std::string json_of(const host::StudyFacts& facts) { return config::text_of(host::to_json(facts), 2) + "\n"; }

std::string json_lines_of(const host::StudyFacts& facts) {
  const Json document = host::to_json(facts);
  std::string text;
  for (const Json& trial : document.at("trials")) text += config::text_of(trial) + "\n";
  return text;
}

}  // namespace dsat::cli
