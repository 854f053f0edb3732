// Random configurations depend on seed and lineage alone, cover all stages, and come to an end.
// Small spaces, whose points can be counted.
#include "search/configurations.h"

#include <gtest/gtest.h>

#include "plugins/surface.h"

namespace dsat::search {
namespace {

const auto kAny = [](const Configuration&) { return true; };

TEST(Configurations, ADrawDependsOnSeedAndLineageAlone) {
  const config::Space space = tests::small_space({1, 2, 3});
  Configurations first(7, space), second(7, space), other(8, space);
  EXPECT_EQ(*first.draw(3, kAny), *second.draw(3, kAny));
  for (uint64_t lineage = 0; lineage < 5; ++lineage) first.draw(lineage, kAny);
  EXPECT_EQ(*first.draw(9, kAny), *second.draw(9, kAny));
  bool differs = false;
  for (uint64_t lineage = 0; lineage < 10; ++lineage) {
    differs = differs || !(*first.draw(lineage, kAny) == *other.draw(lineage, kAny));
  }
  EXPECT_TRUE(differs);
}

TEST(Configurations, EachRoundHasEveryStage) {
  const config::Space space = tests::small_space({0, 1, 2, 3});
  Configurations configurations(11, space);
  for (uint64_t round = 0; round < 20; ++round) {
    std::set<int> stages;
    for (uint64_t i = 0; i < 4; ++i) stages.insert(configurations.draw(4 * round + i, kAny)->stage);
    EXPECT_EQ(stages.size(), 4u);
  }
}

TEST(Configurations, EveryPointOfASmallSpaceIsDrawnOnce) {
  const config::Space space = tests::small_space({1, 2, 3});  // 3 + 6 + 6 points
  Configurations configurations(1, space);
  std::set<Configuration> taken;
  uint64_t lineage = 0;
  while (const auto drawn = configurations.draw(lineage++, [&](const auto& c) { return taken.count(c) == 0; })) {
    taken.insert(*drawn);
  }
  EXPECT_EQ(taken.size(), 15u);
  EXPECT_EQ(configurations.drained(), (std::set<int>{1, 2, 3}));
}

TEST(Configurations, ADrainedStageIsNotDrawnFrom) {
  const config::Space space = tests::small_space({1, 2});
  Configurations configurations(1, space);
  configurations.set_drained({1});
  for (uint64_t lineage = 0; lineage < 10; ++lineage) EXPECT_EQ(configurations.draw(lineage, kAny)->stage, 2);
}

TEST(Configurations, AStageWithoutAxesHasOnePoint) {
  config::Space space;
  space.stages.push_back({0, {}});
  Configurations configurations(1, space);
  EXPECT_EQ(configurations.draw(0, kAny)->choice.size(), 0u);
  EXPECT_FALSE(configurations.draw(1, [](const Configuration&) { return false; }));
}

TEST(Configurations, NoStageIsNothingToDraw) {
  const config::Space space;
  Configurations configurations(1, space);
  EXPECT_FALSE(configurations.draw(0, kAny));
}

}  // namespace
}  // namespace dsat::search
