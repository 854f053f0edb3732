// Orders the values of an axis by what they need: sizes by their number, flags by being set, devices by lying on the
// accelerator.
#include "search/frugal.h"

#include <algorithm>

#include "cost/posterior/memory_keys.h"

namespace dsat::search {
namespace {

double need(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value == "none" ? 1 : 0;
}

bool is_unknown(const config::Axis& axis) {
  if (axis.key == "zero_optimization.contiguous_gradients") return false;  // they take a bucket
  return axis.values.size() > 1 && cost::memory_effect(axis.key) == cost::MemoryEffect::unknown;
}

}  // namespace

std::vector<Configuration> frugal_configurations(const config::StageSpace& stage) {
  Configuration first{stage.stage, {}}, last = first;
  for (const config::Axis& axis : stage.axes) {
    const auto least = std::min_element(axis.values.begin(), axis.values.end(),
                                        [](const Json& a, const Json& b) { return need(a) < need(b); });
    const auto index = static_cast<size_t>(least - axis.values.begin());
    first.choice.push_back(is_unknown(axis) ? 0 : index);
    last.choice.push_back(is_unknown(axis) ? axis.values.size() - 1 : index);
  }
  return first == last ? std::vector<Configuration>{first} : std::vector<Configuration>{first, last};
}

}  // namespace dsat::search
