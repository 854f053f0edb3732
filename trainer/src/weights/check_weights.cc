// Looks the model's names up in the file's, and names the nearest where one is missing.
#include "weights/check_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string_view>

#include "dsat/base/spelling.h"
#include "dsat/error.h"

namespace dsat::trainer {

namespace {

// Edits: names of another program may have long prefixes.
constexpr size_t kAnyDistance = 1000;

}  // namespace

std::vector<std::string> check_weights(const std::string& file, const std::vector<WeightSpec>& in_file,
                                       const std::vector<WeightSpec>& of_model) {
  std::map<std::string, const WeightSpec*> left;
  std::vector<std::string_view> names;
  for (const WeightSpec& spec : in_file) {
    left[spec.name] = &spec;
    names.push_back(spec.name);
  }
  for (const WeightSpec& spec : of_model) {
    const auto found = left.find(spec.name);
    if (found == left.end()) {
      const std::string_view nearest = nearest_name(spec.name, names, kAnyDistance);
      throw Error(fmt::format("{} has no {}{}", file, spec.name,
                              nearest.empty() ? "" : fmt::format("; the nearest name there is {}", nearest)));
    }
    if (found->second->shape != spec.shape) {
      throw Error(fmt::format("{}: {} has the shape [{}], and the model's has [{}]", file, spec.name,
                              fmt::join(found->second->shape, ", "), fmt::join(spec.shape, ", ")));
    }
    left.erase(found);
    for (const std::string& alias : spec.aliases) left.erase(alias);
  }
  std::vector<std::string> extra;
  for (const auto& [name, spec] : left) extra.push_back(name);
  return extra;
}

}  // namespace dsat::trainer
