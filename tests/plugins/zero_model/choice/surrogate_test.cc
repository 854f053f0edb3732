// The surrogate: what it passes on to its models, how failures bound a search, and that its cost does not grow.
// Points lie on the simple surface of surface.h.
#include "zero_model/choice/surrogate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/clashing_sizes.h"
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
    zero_model::EndedTrial ended{id, point, Outcome::completed, 100.0 + static_cast<double>(id % 37), 1e9};
    surrogate.learn(ended);
    if (!surrogate.due()) continue;
    if (id % 8 != 0 && surrogate.young()) continue;
    surrogate.update();
    ++fits;
    sites = std::max({sites, surrogate.speed().sites(), surrogate.memory().sites()});
  }
  EXPECT_LE(sites, 100u);
  EXPECT_LE(fits, 100u);
  EXPECT_FALSE(surrogate.young());
}

// An old study fits rarely; what it hands back is chosen among all that was measured.
TEST(Surrogate, TheBestOfTheLastTrialsIsTheIncumbentOfTheEnd) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Arm* arm = space.arm(zero_model::Configuration{1, {0}});
  const auto learn = [&](TrialId id, int64_t micro_batch) {
    const double throughput = 100 * static_cast<double>(micro_batch) / static_cast<double>(micro_batch + 8);
    surrogate.learn({id, {arm, micro_batch}, Outcome::completed, throughput, {}});
  };
  for (TrialId id = 0; id < 120; ++id) learn(id, static_cast<int64_t>(1 + id % 20));
  surrogate.update();
  learn(120, 30);
  EXPECT_FALSE(surrogate.due());
  surrogate.update_to_the_last();
  EXPECT_EQ(surrogate.incumbent()->trial, 120u);
}

// The other half of a machine is taken from trial 11 on: what is measured then is slower than all before.
TEST(Surrogate, TheIncumbentOfASlowerMachineMayBeALateOne) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Arm* arm = space.arm(zero_model::Configuration{1, {0}});
  TrialId id = 0;
  for (const int64_t micro_batch : {1, 2, 4, 6, 8, 10, 8, 4, 10, 6, 2, 10, 12, 16, 10, 20, 14}) {
    const double throughput = 100 * static_cast<double>(micro_batch) / static_cast<double>(micro_batch + 8);
    surrogate.learn({id, {arm, micro_batch}, Outcome::completed, id < 11 ? throughput : throughput / 2, {}});
    ++id;
  }
  surrogate.update();
  EXPECT_EQ(surrogate.incumbent()->point.micro_batch, 20);
}

TEST(Surrogate, ARefusalIsNoTrialAndTeachesTheClash) {
  const Surface surface;
  config::Space axes = small_space({1});
  axes.stages[0].axes.push_back({"my.kernel", {"plain", "fast"}});
  const Study study = make_study(surface, axes);
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const auto at = [&](size_t bucket, size_t kernel) {
    return zero_model::Point{space.arm(zero_model::Configuration{1, {bucket, kernel}}), 4};
  };
  surrogate.learn({0, at(0, 0), Outcome::completed, 100, {}});
  surrogate.learn({1, at(1, 0), Outcome::completed, 100, {}});
  surrogate.learn({2, at(0, 1), Outcome::completed, 100, {}});
  for (TrialId id = 3; id < 12; ++id) {
    zero_model::Point refused = at(1, 1);
    refused.micro_batch = static_cast<int64_t>(id) + 10;
    surrogate.learn({id, refused, Outcome::invalid_config, {}, {}});
    EXPECT_NE(surrogate.find(refused), nullptr) << "it is not asked for again";
  }
  EXPECT_EQ(surrogate.ended(), 3u);
  EXPECT_LE(surrogate.probability_of_running(at(1, 1)), 0.1);
  zero_model::Point larger = at(0, 0);
  larger.micro_batch = 40;
  EXPECT_EQ(surrogate.probability_of_running(larger), 1) << "the micro batch is not the cause";
}

// One pipeline stage on four devices: a train batch of 16 allows a micro batch of 4.
TEST(Surrogate, ARefusalByTheBoundOfTheTrainBatchBlamesNoValue) {
  const Study study = study_of_bounded_train_batch(Surface(), 16);
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const auto at = [&](size_t stages, int64_t micro_batch) {
    return zero_model::Point{space.arm(zero_model::Configuration{1, {stages}}), micro_batch};
  };
  EXPECT_EQ(at(0, 1).arm->most_by_train_batch, 16);
  EXPECT_EQ(at(1, 1).arm->most_by_train_batch, 4);
  EXPECT_EQ(at(2, 1).arm->most_by_train_batch, 8);
  for (TrialId id = 0; id < 5; ++id) {
    surrogate.learn({id, at(1, static_cast<int64_t>(5 + id)), Outcome::invalid_config, {}, {}});
  }
  EXPECT_EQ(surrogate.probability_of_running(at(1, 4)), 1);
  EXPECT_NE(surrogate.find(at(1, 5)), nullptr);
}

TEST(Surrogate, WhatAFailedTrialWantedMakesSmallerOnesLessLikelyToFit) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  const auto fits_at_40 = [&](std::optional<double> peak_above_bytes) {
    zero_model::ModelSpace space(study);
    zero_model::Surrogate surrogate(study, space);
    const zero_model::Arm* arm = space.arm(zero_model::Configuration{1, {0}});
    surrogate.learn({0, {arm, 4}, Outcome::completed, 100, {}});
    surrogate.learn({1, {arm, 80}, Outcome::out_of_memory, {}, {}, peak_above_bytes});
    surrogate.update();
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
  surrogate.learn({3, point, Outcome::failed, {}, {}});
  surrogate.learn({5, point, Outcome::completed, 100, {}});
  surrogate.learn({4, point, Outcome::completed, 100, {}});
  surrogate.update();
  EXPECT_EQ(surrogate.incumbent()->trial, 4u);
}

TEST(Surrogate, FailuresAboveWhatRanAreACeilingAndBlameNoStage) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Arm *one = space.arm(zero_model::Configuration{1, {0}}),
                        *two = space.arm(zero_model::Configuration{2, {0, 0}});
  surrogate.learn({0, {one, 16}, Outcome::completed, 100, {}});
  for (TrialId id = 1; id <= 3; ++id) surrogate.learn({id, {one, 64}, Outcome::failed, {}, {}});
  EXPECT_EQ(surrogate.probability_of_running({one, 16}), 1);
  EXPECT_EQ(surrogate.probability_of_running({two, 8}), 1);
  EXPECT_LT(surrogate.probability_of_running({two, 64}), 0.05);
  EXPECT_GT(surrogate.probability_of_running({two, 24}), surrogate.probability_of_running({two, 48}));
  surrogate.learn({4, {one, 96}, Outcome::completed, 200, {}});
  EXPECT_LT(surrogate.probability_of_running({one, 80}), 0.6);  // the failures have another cause after all
  EXPECT_GT(surrogate.probability_of_running({one, 80}), 0.2);
}

TEST(Surrogate, ACeilingIsLookedForUntilItIsKnownWithinATenth) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Arm* arm = space.arm(zero_model::Configuration{1, {0}});
  surrogate.learn({0, {arm, 179}, Outcome::completed, 100, {}});
  TrialId id = 1;
  for (const int64_t micro_batch : {512, 320, 240}) {
    surrogate.learn({id++, {arm, micro_batch}, Outcome::failed, {}, {}});
  }
  EXPECT_GT(surrogate.probability_of_running({arm, 200}), 0.5);
  surrogate.learn({id, {arm, 224}, Outcome::completed, 110, {}});
  EXPECT_LT(surrogate.probability_of_running({arm, 232}), 0.05);
}

}  // namespace
}  // namespace dsat::tests
