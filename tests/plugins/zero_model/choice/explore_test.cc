// Where the acquisition looks in a stage that no trial has touched.
// Made-up trials of one stage of surface.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "plugins/searchers.h"
#include "zero_model/choice/acquisition.h"

namespace dsat::tests {
namespace {

struct Look {
  int stage = 0;
  int64_t micro_batch = 0;
};

// The look into stage 2 after trials of stage 1 at micro batches 2, 4 and 8.
std::optional<Look> look_at_new_stage(const std::string& metric, bool maximise) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2}));
  study.metric = metric;
  study.maximise = maximise;
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  zero_model::Acquisition acquisition(space, surrogate, study.seed);
  TrialId id = 0;
  for (const int64_t micro_batch : {2, 4, 8}) {
    const zero_model::Point point{space.arm(zero_model::Configuration{1, {2}}), micro_batch};
    Json config = study.base_config;
    testing::merge(config, space.overrides(point));
    const double throughput = surface.throughput(config);
    const double latency = static_cast<double>(micro_batch * surface.world_size) * 1e6 / throughput;
    const double value = maximise ? throughput : latency;
    surrogate.learn({id++, point, Outcome::completed, value, surface.peak(config)});
  }
  surrogate.update();
  acquisition.next({}, zero_model::Risk(), id);
  const auto look = acquisition.explore_new_stage();
  return look ? std::optional(Look{look->point.arm->stage, look->point.micro_batch}) : std::nullopt;
}

TEST(Explore, ANewStageIsLookedAtAtItsCeiling) {
  const auto look = look_at_new_stage("throughput", true);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->stage, 2);
  EXPECT_GT(look->micro_batch, 8);
}

// The smallest micro batch has the lowest latency: at its ceiling a stage would show nothing.
TEST(Explore, WhereTheMetricIsMinimisedANewStageIsLookedAtAtTheBestMicroBatch) {
  const auto look = look_at_new_stage("latency", false);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->stage, 2);
  EXPECT_EQ(look->micro_batch, 2);
}

// Two large trials that run out of memory say little about a stage: the best size may lie just below them.
TEST(Explore, AStageThatOnlyRanOutOfMemoryIsTriedAtHalfOfThat) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  const zero_model::Arm *runs = space.arm(zero_model::Configuration{1, {2}}),
                        *fails = space.arm(zero_model::Configuration{2, {2, 1}});
  TrialId id = 0;
  for (const int64_t micro_batch : {2, 4, 8}) {
    surrogate.learn({id++, {runs, micro_batch}, Outcome::completed, 100.0 * static_cast<double>(micro_batch), {}});
  }
  for (const int64_t micro_batch : {30, 24})
    surrogate.learn({id++, {fails, micro_batch}, Outcome::out_of_memory, {}, {}});
  surrogate.update();
  zero_model::Acquisition acquisition(space, surrogate, study.seed);
  int64_t largest = 0;
  std::vector<zero_model::Point> pending;
  while (pending.size() < 24) {
    const auto proposal = acquisition.next(pending, {0.9, 0.9, 0}, id);
    ASSERT_TRUE(proposal);
    if (proposal->point.arm->stage == 2) largest = std::max(largest, proposal->point.micro_batch);
    pending.push_back(proposal->point);
  }
  EXPECT_GT(largest, 1);
  EXPECT_LE(largest, 12);
}

// The look after trials of stage 1 with these places of the buckets' three values.
std::optional<std::vector<size_t>> far_look(const std::vector<std::vector<size_t>>& tried, bool again = false) {
  const Surface surface;
  config::Space of_two = small_space({1});
  of_two.stages[0].axes.push_back({"zero_optimization.allgather_bucket_size", of_two.stages[0].axes[0].values});
  const Study study = make_study(surface, of_two);
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  zero_model::Acquisition acquisition(space, surrogate, study.seed);
  TrialId id = 0;
  for (const std::vector<size_t>& choice : tried) {
    surrogate.learn({id++, {space.arm(zero_model::Configuration{1, choice}), 8}, Outcome::completed, 100.0, {}});
  }
  surrogate.update();
  acquisition.next({}, zero_model::Risk(), id);
  if (again) acquisition.explore_far_values();
  const auto look = acquisition.explore_far_values();
  return look ? std::optional(look->point.arm->choice) : std::nullopt;
}

TEST(Explore, AStageIsLookedAtOnceWhereAllItsNumbersAreOthers) {
  using Choice = std::vector<size_t>;
  EXPECT_EQ(far_look({{0, 2}}), (Choice{1, 1})) << "no farther than that needs";
  EXPECT_EQ(far_look({{0, 0}, {2, 0}}), (Choice{1, 1}));
  EXPECT_FALSE(far_look({{0, 0}}, /*again=*/true));
  EXPECT_FALSE(far_look({{0, 0}, {1, 0}, {2, 0}})) << "the first one has been everywhere";
}

// The looks before an end, after trials of one value of stage 1; each is answered with half of the best throughput.
struct LookBeforeEnd {
  std::string why;
  std::vector<size_t> choice;
};
std::vector<LookBeforeEnd> looks_before_end(const std::vector<int>& stages) {
  const Surface surface;
  const Study study = make_study(surface, small_space(stages));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  zero_model::Acquisition acquisition(space, surrogate, study.seed);
  TrialId id = 0;
  const auto learn = [&](const zero_model::Point& point, double share) {
    Json config = study.base_config;
    testing::merge(config, space.overrides(point));
    surrogate.learn({id++, point, Outcome::completed, share * surface.throughput(config), surface.peak(config)});
    surrogate.update();
    acquisition.next({}, {0.05, 0.05, 0}, id);
  };
  for (const int64_t micro_batch : {2, 4, 8}) learn({space.arm(zero_model::Configuration{1, {1}}), micro_batch}, 1);
  std::vector<LookBeforeEnd> looks;
  while (looks.size() < 20) {
    const auto look = acquisition.explore_before_end();
    if (!look) break;
    looks.push_back({look->exploration, look->point.arm->choice});
    learn(look->point, 0.5);
  }
  return looks;
}

TEST(Explore, BeforeAnEndEachStageIsMeasuredAtItsBestGuess) {
  const auto looks = looks_before_end({1, 2});
  const auto is_guess = [](const LookBeforeEnd& look) {
    return look.why == "the best guess of stage 2 was not measured";
  };
  EXPECT_TRUE(std::any_of(looks.begin(), looks.end(), is_guess));
}

TEST(Explore, BeforeAnEndAValueThatNoTrialHadIsMeasured) {
  const auto looks = looks_before_end({1});
  ASSERT_FALSE(looks.empty());
  EXPECT_NE(looks[0].choice[0], 1u);
}

TEST(Explore, TheLooksBeforeAnEndEnd) { EXPECT_LT(looks_before_end({1, 2, 3}).size(), 20u); }

}  // namespace
}  // namespace dsat::tests
