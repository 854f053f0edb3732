// Counts how often each pair of values was accepted and refused.
#include "zero_model/choice/refusals.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {

// A pair of a value with itself stands for the value alone.
template <typename Visit>
void Refusals::for_each_pair(const Arm& arm, const Visit& visit) {
  const size_t axes = arm.coordinates.size();
  const auto at = [&](size_t i) { return i < axes ? arm.coordinates[i] : static_cast<double>(arm.stage); };
  for (size_t i = 0; i <= axes; ++i) {
    for (size_t j = i; j <= axes; ++j) visit(Pair{i, at(i), j, at(j)});
  }
}

void Refusals::add(const Arm& arm, bool refused) {
  any_refused_ |= refused;
  for_each_pair(arm, [&](const Pair& pair) {
    Count& count = counts_[pair];
    ++(refused ? count.refused : count.accepted);
  });
}

double Refusals::probability_of_acceptance(const Arm& arm) const {
  constexpr double kByChance = 0.3;  // the probability that such a refusal has another cause
  if (!any_refused_) return 1;
  int most = 0;
  for_each_pair(arm, [&](const Pair& pair) {
    const auto it = counts_.find(pair);
    if (it != counts_.end() && it->second.accepted == 0) most = std::max(most, it->second.refused);
  });
  return std::pow(kByChance, most);
}

}  // namespace dsat::zero_model
