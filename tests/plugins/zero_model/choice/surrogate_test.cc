// The surrogate: what it passes on to its models, how failures bound a search, and that its cost does not grow.
// Points lie on the simple surface of surface.h.
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

TEST(Surrogate, WhatAFailedTrialWantedMakesSmallerOnesLessLikelyToFit) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  const auto fits_at_40 = [&](std::optional<double> peak_above_bytes) {
    zero_model::ModelSpace space(study);
    zero_model::Surrogate surrogate(study, space);
    const zero_model::Arm* arm = space.arm(zero_model::Configuration{1, {0}});
    surrogate.learn({0, {arm, 4}, Outcome::completed, 100, {}, {}, {}, {}});
    surrogate.learn({1, {arm, 80}, Outcome::out_of_memory, {}, {}, {}, {}, {}, peak_above_bytes});
    surrogate.update({});
    return surrogate.expected_to_fit({arm, 40});
  };
  EXPECT_LT(fits_at_40(2.5 * surface.device_memory), fits_at_40(std::nullopt) - 0.1);
}

TEST(Surrogate, TheTrialOfThePointIsTheFirstThatMeasuredIt) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Point point{space.arm(zero_model::Configuration{1, {0}}), 4};
  surrogate.learn({3, point, Outcome::failed, {}, {}, {}, {}, {}});
  surrogate.learn({5, point, Outcome::completed, 100, {}, {}, {}, {}});
  surrogate.learn({4, point, Outcome::completed, 100, {}, {}, {}, {}});
  surrogate.update({});
  EXPECT_EQ(surrogate.incumbent()->trial, 4u);
}

TEST(Surrogate, FailuresAboveWhatRanAreACeilingAndBlameNoStage) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Arm *one = space.arm(zero_model::Configuration{1, {0}}),
                        *two = space.arm(zero_model::Configuration{2, {0, 0}});
  surrogate.learn({0, {one, 16}, Outcome::completed, 100, {}, {}, {}, {}});
  for (TrialId id = 1; id <= 3; ++id) surrogate.learn({id, {one, 64}, Outcome::failed, {}, {}, {}, {}, {}});
  EXPECT_EQ(surrogate.probability_of_running({one, 16}), 1);
  EXPECT_EQ(surrogate.probability_of_running({two, 8}), 1);
  EXPECT_LT(surrogate.probability_of_running({two, 64}), 0.05);
  EXPECT_GT(surrogate.probability_of_running({two, 24}), surrogate.probability_of_running({two, 48}));
  surrogate.learn({4, {one, 96}, Outcome::completed, 200, {}, {}, {}, {}});
  EXPECT_LT(surrogate.probability_of_running({one, 80}), 0.6);  // the failures have another cause after all
  EXPECT_GT(surrogate.probability_of_running({one, 80}), 0.2);
}

}  // namespace
}  // namespace dsat::tests
