// Configurations written over each other, and an experiment's sizes compared with an engine's.
// Errors name both sides.
#include "dsat/trainer/deepspeed_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(OverwriteDeepspeedConfig, CopiesLeavesOverLeaves) {
  const Json base = {{"train_batch_size", 8}, {"zero_optimization", {{"stage", 1}, {"overlap_comm", true}}}};
  const Json source = {{"zero_optimization", {{"stage", 2}}}, {"bf16", {{"enabled", true}}}};
  const Json expected = {{"train_batch_size", 8},
                         {"zero_optimization", {{"stage", 2}, {"overlap_comm", true}}},
                         {"bf16", {{"enabled", true}}}};
  EXPECT_EQ(overwrite_deepspeed_config(base, source), expected);
}

TEST(OverwriteDeepspeedConfig, ReplacesListsWhole) {
  EXPECT_EQ(overwrite_deepspeed_config({{"betas", {0.9, 0.99}}}, {{"betas", {0.5}}})["betas"], Json({0.5}));
}

TEST(OverwriteDeepspeedConfig, ReadsABaseFromItsPath) {
  const std::string path = ::testing::TempDir() + "overwrite_base.json";
  std::ofstream(path) << R"({"train_batch_size": 8 /* comments are allowed */})";
  EXPECT_EQ(overwrite_deepspeed_config(path, {{"gradient_clipping", 1}}),
            Json({{"train_batch_size", 8}, {"gradient_clipping", 1}}));
}

TEST(OverwriteDeepspeedConfig, RefusesWhatIsNoConfiguration) {
  EXPECT_THAT([] { overwrite_deepspeed_config("no/such.json", Json::object()); },
              ThrowsMessage<Error>(HasSubstr("no/such.json")));
  EXPECT_THAT([] { overwrite_deepspeed_config(3, Json::object()); }, ThrowsMessage<Error>(HasSubstr("not 3")));
  EXPECT_THAT([] { overwrite_deepspeed_config(Json::object(), "x"); }, ThrowsMessage<Error>(HasSubstr("not \"x\"")));
}

TEST(ReconcileSizes, AgreesWithWhatIsLeftOut) {
  EXPECT_NO_THROW(reconcile_sizes(Json::object(), {8, 2, 2, 2, 2}));
  EXPECT_NO_THROW(reconcile_sizes({{"hyperparameters", {{"global_batch_size", 8}}}}, {8, 2, 2, 2, 2}));
}

TEST(ReconcileSizes, NamesBothSides) {
  EXPECT_THAT(
      [] {
        reconcile_sizes({{"hyperparameters", {{"global_batch_size", 16}}}}, {8, 2, 2, 2, 2});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("global_batch_size is 16"), HasSubstr("train_batch_size is 8"))));
  EXPECT_THAT(
      [] {
        reconcile_sizes({{"resources", {{"slots_per_trial", 4}}}}, {8, 2, 2, 2, 2});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("slots_per_trial is 4"), HasSubstr("size is 2"))));
  EXPECT_THAT(
      [] {
        reconcile_sizes({{"hyperparameters", {{"data_parallel_world_size", "2"}}}}, {8, 2, 2, 2, 2});
      },
      ThrowsMessage<Error>(HasSubstr("data_parallel_world_size is \"2\"")));
}

TEST(WithoutConstWrappers, FoldsThemAtAnyDepth) {
  const Json wrapped = {{"width", {{"type", "const"}, {"val", 3}}},
                        {"deep", {{"x", {{"type", "const"}, {"val", "y"}}}}}};
  EXPECT_EQ(without_const_wrappers(wrapped), Json({{"width", 3}, {"deep", {{"x", "y"}}}}));
}

}  // namespace
}  // namespace dsat::trainer
