// Reads the characters once and keeps whether they are inside quotes.
#include "sim/csv.h"

#include "dsat/error.h"

namespace dsat::host::sim {

std::vector<std::vector<std::string>> parse_csv(std::string_view text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // at the begin of a spreadsheet's "CSV UTF-8"
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> fields(1);
  bool quoted = false;
  const auto end_line = [&] {
    if (fields.size() > 1 || !fields[0].empty()) lines.push_back(std::move(fields));
    fields.assign(1, "");
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c != '"' || doubled) fields.back() += c;
      if (doubled) ++i;
      if (c == '"' && !doubled) quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      end_line();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (quoted) throw Error(file + ": a quoted field is not closed");
  end_line();
  return lines;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace dsat::host::sim
