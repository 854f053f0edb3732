// Which values are refused together: two axes of the user's that clash in some combinations, for instance.
//
// A refusal costs no run, so it says nothing of memory, speed or the script. Two values (or one, or a stage and one)
// that were refused together and never accepted are likely the cause, the more so the more often that was seen. A
// refusal that no such pair explains comes from something else, the micro batch for instance.
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
  // In (0, 1]; 1 where no pair of the arm's values was only ever refused.
  double probability_of_acceptance(const Arm& arm) const;

 private:
  using Pair = std::tuple<size_t, double, size_t, double>;  // two axes with a coordinate each; the stage counts as one
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
