// Which configurations of a stage need the least memory.
#include "search/frugal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dsat::search {
namespace {

using ::testing::ElementsAre;

std::vector<Json> values(const config::StageSpace& stage, const Configuration& configuration) {
  std::vector<Json> values;
  for (size_t i = 0; i < stage.axes.size(); ++i) values.push_back(stage.axes[i].values[configuration.choice[i]]);
  return values;
}

TEST(Frugal, EachAxisHasTheValueThatNeedsTheLeast) {
  const config::StageSpace stage{3,
                                 {{"zero_optimization.reduce_bucket_size", {500, 5, 50}},
                                  {"zero_optimization.overlap_comm", {true, false}},
                                  {"zero_optimization.contiguous_gradients", {true, false}},
                                  {"zero_optimization.offload_optimizer.device", {"none", "cpu"}},
                                  {"zero_optimization.stage3_param_persistence_threshold", {100, 10}}}};
  const std::vector<Configuration> frugal = frugal_configurations(stage);
  ASSERT_EQ(frugal.size(), 1u);
  EXPECT_EQ(frugal[0].stage, 3);
  EXPECT_THAT(values(stage, frugal[0]), ElementsAre(5, false, false, "cpu", 10));
}

TEST(Frugal, ValuesOfUnknownEffectAreTriedFromBothEnds) {
  const config::StageSpace stage{
      1, {{"zero_optimization.reduce_bucket_size", {500, 5}}, {"data.sequence", {512, 1024, 2048}}, {"data.one", {7}}}};
  const std::vector<Configuration> frugal = frugal_configurations(stage);
  ASSERT_EQ(frugal.size(), 2u);
  EXPECT_THAT(values(stage, frugal[0]), ElementsAre(5, 512, 7));
  EXPECT_THAT(values(stage, frugal[1]), ElementsAre(5, 2048, 7));
}

TEST(Frugal, AStageWithoutAxesHasOne) { EXPECT_EQ(frugal_configurations({0, {}}).size(), 1u); }

}  // namespace
}  // namespace dsat::search
