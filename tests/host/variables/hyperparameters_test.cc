// The hyperparameters that a trial of an experiment file reads.
#include "variables/hyperparameters.h"

#include <gtest/gtest.h>

#include "command/environment_use.h"

namespace dsat::host {
namespace {

const Json kConfig = Json::parse(R"({"train_batch_size": 12, "zero_optimization": {"stage": 2}})");

TEST(TrialHyperparameters, HoldTheConfigurationInEveryFormThatAScriptMayRead) {
  const Json given = Json::parse(R"({"lr": 0.1, "deepspeed_config": "ds.json", "global_batch_size": 8,
                                     "overwrite_deepspeed_args": {"fp16": {"enabled": true}}})");
  EXPECT_EQ(trial_hyperparameters(given, kConfig, "/t/3/ds_config.json"),
            (Json{{"lr", 0.1},
                  {"deepspeed_config", "/t/3/ds_config.json"},
                  {"global_batch_size", 12},
                  {"overwrite_deepspeed_args", kConfig}}));
  EXPECT_EQ(trial_hyperparameters(Json::parse(R"({"ds_config": {"fp16": {}}})"), kConfig, "/c")["ds_config"], kConfig);
  EXPECT_EQ(trial_hyperparameters(Json::parse(R"({"ds_config": "a.json"})"), kConfig, "/c")["ds_config"], "/c");
}

TEST(TrialHyperparameters, LightningsFileHasNoAccumulation) {
  const Json config = {{"gradient_accumulation_steps", 1}, {"train_micro_batch_size_per_gpu", 4}};
  EXPECT_EQ(as_script_takes_it({"env", "PL_DEEPSPEED_CONFIG_PATH=a.json", "python3", "t.py"}, config).size(), 1u);
  EXPECT_EQ(as_script_takes_it({"python3", "t.py", "PL_DEEPSPEED_CONFIG_PATH=a.json"}, config), config);
  EXPECT_EQ(as_script_takes_it({}, config), config);
}

TEST(TrialHyperparameters, GetNoSizesThatNobodyAskedFor) {
  const Json result = trial_hyperparameters(Json::object(), kConfig, "/c");
  EXPECT_EQ(result.size(), 2u);
  EXPECT_EQ(result["deepspeed_config"], "/c");
}

}  // namespace
}  // namespace dsat::host
