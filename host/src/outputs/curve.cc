// Numbers that JSON lacks are words, "nan", "inf" and "-inf", in files as in lines.
#include "outputs/curve.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "dsat/base/files.h"
#include "dsat/base/utf8.h"
#include "dsat/config/json.h"

namespace dsat::host {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr const char* kLosses = "losses";
constexpr const char* kGradNorms = "grad_norms";

// Reads "2.31", "1e-3", "nan", "-inf", and "12,345.6" as torchtitan prints it.
std::optional<double> number_of(std::string_view given) {
  static const re2::RE2 grouped(R"(\d{1,3}(?:,\d{3})+(?:\.\d*)?)");
  std::string text(given);
  if (!text.empty() && text.front() == '+') text.erase(0, 1);
  if (re2::RE2::FullMatch(text, grouped)) text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// torchrun marks lines: "[rank3]:", "[default3]:".
bool is_marked_otherwise(const std::string& line) {
  static const re2::RE2 marked(R"(^\[(?:rank|default)(\d+)\]:)");
  int rank = 0;
  return re2::RE2::PartialMatch(line, marked, &rank) && rank != 0;
}

std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? number_of(std::string_view(value.get_ref<const std::string&>())) : std::nullopt;
}

std::vector<std::optional<double>> list_at(const Json& json, const char* key) {
  std::vector<std::optional<double>> values;
  const auto list = json.is_object() ? json.find(key) : json.end();
  if (list == json.end() || !list->is_array()) return values;
  for (const Json& value : *list) {
    if (values.size() == kMostCurveSteps) break;
    values.push_back(number_of(value));
  }
  return values;
}

}  // namespace

Curve curve_from_json(const Json& json) { return {list_at(json, kLosses), list_at(json, kGradNorms)}; }

Curve read_curve_file(const std::filesystem::path& file, std::vector<std::string>& warnings) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const std::string name = file.filename().string();
  const FileText text = try_read_file(file, kMaxBytes);
  try {
    if (!text.ok()) throw Error(fmt::format("{}: {}", name, text.problem));
    const Json json = config::parse(text.bytes, name);
    return curve_from_json(json);
  } catch (const Error& problem) {
    warnings.push_back(fmt::format("losses and gradient norms are left out: {}", problem.what()));
    return {};
  }
}

std::vector<std::optional<double>> numbers_in(const std::vector<std::string>& lines, const re2::RE2& pattern,
                                              const char* option, std::vector<std::string>& warnings) {
  std::vector<std::optional<double>> values;
  bool has_warned = false;
  for (const std::string& line : lines) {
    if (values.size() == kMostCurveSteps) break;
    re2::StringPiece group;
    if (!re2::RE2::PartialMatch(line, pattern, &group) || is_marked_otherwise(line)) continue;
    values.push_back(number_of(std::string_view(group.data(), group.size())));
    if (values.back() || has_warned) continue;
    has_warned = true;
    warnings.push_back(fmt::format("{}: its group fits '{}', which is no number: no value of that step counts", option,
                                   shortened(std::string(group.data(), group.size()), 40)));
  }
  return values;
}

}  // namespace dsat::host
