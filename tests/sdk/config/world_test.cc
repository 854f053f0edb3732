// Configurations that name the size of their trial.
#include "dsat/config/world.h"

#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json with_world(int gpus, int nodes) { return {{"autotuning", {{"num_gpus", gpus}, {"num_nodes", nodes}}}}; }

TEST(World, IsThereOnlyWhenBothNumbersAre) {
  const auto world = tuned_world(with_world(4, 2));
  ASSERT_TRUE(world.has_value());
  EXPECT_EQ(world->size(), 8);
  for (const char* text :
       {"{}", R"({"autotuning": {"num_gpus": 4}})", R"({"autotuning": {"num_gpus": [4], "num_nodes": 1}})",
        R"({"autotuning": {"num_gpus": 0, "num_nodes": 1}})", R"({"autotuning": null})", "[1]"}) {
    EXPECT_FALSE(tuned_world(Json::parse(text)).has_value()) << text;
  }
}

TEST(World, IsPartOfATrialsIdentityAndNothingElseOfTheSectionIs) {
  const std::string plain = identity(Json::object());
  EXPECT_EQ(identity({{"autotuning", {{"enabled", true}, {"num_gpus", 2}}}}), plain);
  EXPECT_NE(identity(with_world(2, 1)), plain);
  EXPECT_NE(identity(with_world(2, 1)), identity(with_world(4, 1)));
  Json noisy = with_world(2, 1);
  noisy["autotuning"]["fast"] = false;
  EXPECT_EQ(identity(noisy), identity(with_world(2, 1)));
  keep_only_world(noisy);
  EXPECT_EQ(noisy, with_world(2, 1));
}

TEST(World, DecidesTheDataParallelSizeOfItsConfiguration) {
  EXPECT_EQ(data_parallel_size_of(Json::object(), 3), 3);
  Json config = with_world(4, 2);
  EXPECT_EQ(data_parallel_size_of(config, 3), 8);
  config["pipeline"] = {{"stages", 2}};
  EXPECT_EQ(data_parallel_size_of(config, 3), 4);
  config["pipeline"] = {{"stages", 3}};
  EXPECT_THAT(error_of([&] { data_parallel_size_of(config, 3); }), HasSubstr("not a multiple"));
}

TEST(World, IsAnAxisOfEveryStageWithTheBaseAtItsFirstValue) {
  SpaceRequest request;
  request.stages = {0, 1};
  request.user_config = parse(R"({"autotuning": {"num_gpus": [2, 4], "fast": true}})", "test");
  request.num_gpus = {2, 4};
  request.num_nodes = {1};
  const SpaceResult result = build_space(request);
  EXPECT_EQ(tuned_world(result.base_config)->num_gpus, 2);
  for (const StageSpace& stage : result.space.stages) {
    ASSERT_FALSE(stage.axes.empty());
    EXPECT_EQ(stage.axes.back().key, "autotuning.num_gpus");
    EXPECT_THAT(stage.axes.back().values, ElementsAre(2, 4));
  }
  const StageSpace& first = result.space.stages[0];
  EXPECT_EQ(overrides(first, {1}, 3)["autotuning"]["num_gpus"], 4);
}

TEST(World, OfAStudyWhoseTrialsAreAlikeIsNotInItsConfigurations) {
  SpaceRequest request;
  request.stages = {1};
  request.user_config = parse(R"({"autotuning": {"num_gpus": 2, "num_nodes": 1, "fast": true}})", "test");
  const Json base = build_space(request).base_config;
  EXPECT_FALSE(tuned_world(base).has_value());
  EXPECT_EQ(base["autotuning"]["fast"], true);
}

}  // namespace
}  // namespace dsat::config
