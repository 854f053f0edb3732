#include "terminal/format.h"

#include <algorithm>

#include "dsat/base/units.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::cli {
namespace {

std::optional<int64_t> integer_at(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

// Columns that a terminal needs for UTF-8 text: a continuation byte needs none.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string format_metric(const std::string& metric, const Json& metrics) {
  if (!metrics.is_object()) return "-";
  const auto it = metrics.find(metric);
  return it != metrics.end() && it->is_number() ? format_metric(metric, it->get<double>()) : "-";
}

std::optional<int64_t> zero_stage_of(const Json& config) { return integer_at(config, "zero_optimization.stage"); }

std::optional<int64_t> micro_batch_of(const Json& config) { return integer_at(config, config::kMicroBatchKey); }

std::string or_dash(const std::optional<int64_t>& value) { return value ? std::to_string(*value) : "-"; }

std::string bytes_or_dash(const std::optional<uint64_t>& bytes) {
  return bytes ? format_size(static_cast<double>(*bytes)) : "-";
}

std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      const bool flush_right = i < right.size() && right[i];
      line += (i == 0 ? "" : "  ") + (flush_right ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace dsat::cli
