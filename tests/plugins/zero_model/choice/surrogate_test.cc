// The surrogate's cost: a fit and a prediction stop growing with the study.
// Two thousand trials, of which the models may see no more than a window.
#include "zero_model/choice/surrogate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

TEST(Surrogate, FitsAWindowOfTrialsHoweverLongTheStudyIs) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  size_t fits = 0, sites = 0;
  for (TrialId id = 0; id < 2000; ++id) {
    const zero_model::Point point{space.arm(zero_model::Configuration{1, {id % 3}}), static_cast<int64_t>(1 + id % 20)};
    zero_model::EndedTrial ended{id, point, Outcome::completed, 100.0 + static_cast<double>(id % 37), {}, {}, {}, 1e9};
    surrogate.learn(ended);
    if (!surrogate.due()) continue;
    if (id % 8 != 0 && surrogate.young()) continue;
    surrogate.update({});
    ++fits;
    sites = std::max({sites, surrogate.speed().sites(), surrogate.memory().sites()});
  }
  EXPECT_LE(sites, 100u);
  EXPECT_LE(fits, 100u);
  EXPECT_FALSE(surrogate.young());
}

}  // namespace
}  // namespace dsat::tests
