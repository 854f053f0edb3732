// Cuts the text at commas, each entry at its colon, and each shape at its crosses.
// Anything else is refused with the entry and an example.
#include "settings/input_spec.h"

#include <fmt/format.h>

#include <optional>
#include <sstream>

#include "dsat/base/numbers.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 31;

[[noreturn]] void refuse(const std::string& entry) {
  throw Error(
      fmt::format("--input-spec {}: expected float:SHAPE or int<LIMIT>:SHAPE, like float:3x32x32,int<512>:64", entry));
}

int64_t parse_extent(const std::string& text, const std::string& entry) {
  const std::optional<int64_t> extent = parse_integer(text, 1, kMaxExtent);
  if (!extent) refuse(entry);
  return *extent;
}

InputSpec parse_entry(const std::string& entry) {
  InputSpec spec;
  const size_t colon = entry.find(':');
  const std::string type = entry.substr(0, colon);
  if (type.size() > 5 && type.compare(0, 4, "int<") == 0 && type.back() == '>') {
    spec.limit = parse_extent(type.substr(4, type.size() - 5), entry);
  } else if (type != "float") {
    refuse(entry);
  }
  if (colon == std::string::npos) return spec;
  std::istringstream shape(entry.substr(colon + 1));
  std::string extent;
  while (std::getline(shape, extent, 'x')) spec.shape.push_back(parse_extent(extent, entry));
  if (spec.shape.empty() || entry.back() == 'x') refuse(entry);
  return spec;
}

}  // namespace

std::vector<InputSpec> parse_input_spec(const std::string& text) {
  std::vector<InputSpec> specs;
  std::istringstream entries(text);
  std::string entry;
  while (std::getline(entries, entry, ',')) specs.push_back(parse_entry(entry));
  if (specs.empty() || text.back() == ',') refuse(text);
  return specs;
}

}  // namespace dsat::trainer
