// Values that are refused together, such as two of the user's axes that clash in some combinations.
//
// A refusal costs no run and shows nothing about memory, speed or the script. A pair of values that was refused and
// never accepted is likely the cause, and more likely with each refusal. A pair can also be one value alone, or a stage
// and a value. A refusal without such a pair has another cause, such as the micro batch.
// Threading: one thread. Errors: none.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_REFUSALS_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_REFUSALS_H_

#include <cstddef>
#include <map>
#include <tuple>

#include "zero_model/space/space.h"

namespace dsat::zero_model {

class Refusals {
 public:
  void add(const Arm& arm, bool refused);
  // In (0, 1]. 1: each pair of the arm's values was accepted at least once, or never refused.
  double probability_of_acceptance(const Arm& arm) const;

 private:
  using Pair = std::tuple<size_t, double, size_t, double>;  // two axes with a coordinate each; the stage is an axis too
  struct Count {
    int accepted = 0, refused = 0;
  };
  template <typename Visit>
  static void for_each_pair(const Arm& arm, const Visit& visit);

  std::map<Pair, Count> counts_;
  bool any_refused_ = false;
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_REFUSALS_H_
