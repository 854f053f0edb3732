// The answer of `dsat-host estimate`.
#include "dsat/cost/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace dsat::cost {
namespace {

EstimateRequest paper() {
  EstimateRequest request;
  request.num_params = 7.5e9;
  request.world_size = 64;
  return request;
}

TEST(EstimateTest, GivesTheFourStagesOfTheZeroPaper) {
  const Json json = estimate(paper());
  ASSERT_EQ(json["stages"].size(), 4u);
  const double expected_gb[] = {120, 31.4, 16.6, 1.9};
  for (size_t stage = 0; stage < 4; ++stage) {
    const Json& entry = json["stages"][stage];
    EXPECT_EQ(entry["stage"], stage);
    EXPECT_NEAR(entry["model_state_bytes"].get<double>() / 1e9, expected_gb[stage], 0.05);
    EXPECT_TRUE(entry["activation_bytes_per_sample"].is_null());
    EXPECT_TRUE(entry["max_micro_batch"].is_null());
  }
}

TEST(EstimateTest, AShapeGivesActivationsAndADeviceTheMicroBatch) {
  EstimateRequest request;
  request.num_params = 1e9;
  request.world_size = 8;
  request.transformer = TransformerShape{24, 2048, 16, 1024};
  EXPECT_TRUE(estimate(request)["stages"][1]["max_micro_batch"].is_null());
  request.device_memory_bytes = 40e9;
  const Json entry = estimate(request)["stages"][2];
  const double activation = 24.0 * (34.0 * 1024 * 2048 + 5.0 * 16 * 1024 * 1024);
  const double states = 1e9 * (2 + 14.0 / 8), buckets = 5e8 * 2;
  EXPECT_DOUBLE_EQ(entry["activation_bytes_per_sample"].get<double>(), activation);
  EXPECT_EQ(entry["max_micro_batch"], std::floor((40e9 - states - buckets) / activation));
}

TEST(EstimateTest, AModelThatDoesNotFitHasMicroBatchZero) {
  EstimateRequest request = paper();
  request.transformer = TransformerShape{32, 4096, 32, 2048};
  request.device_memory_bytes = 80e9;
  EXPECT_EQ(estimate(request)["stages"][0]["max_micro_batch"], 0);
}

TEST(EstimateTest, OffloadActsOnlyWhereDeepSpeedAllowsIt) {
  EstimateRequest request = paper();
  request.offload_optimizer = request.offload_param = true;
  const Json json = estimate(request), without = estimate(paper());
  EXPECT_EQ(json["stages"][0]["model_state_bytes"], without["stages"][0]["model_state_bytes"]);
  EXPECT_DOUBLE_EQ(json["stages"][1]["model_state_bytes"].get<double>(), 30e9) << "the gradients stay";
  EXPECT_DOUBLE_EQ(json["stages"][2]["model_state_bytes"].get<double>(), 15e9);
  EXPECT_EQ(json["stages"][3]["model_state_bytes"], 0);
}

TEST(EstimateTest, Fp32WithAdamIs16BytesAParameter) {
  EstimateRequest request = paper();
  request.precision = Precision::fp32;
  EXPECT_DOUBLE_EQ(estimate(request)["stages"][0]["model_state_bytes"].get<double>(), 16 * 7.5e9);
}

TEST(EstimateTest, TrainableParametersOnlyCostGradients) {
  EstimateRequest request = paper();
  request.trainable_params = 0;
  EXPECT_DOUBLE_EQ(estimate(request)["stages"][0]["model_state_bytes"].get<double>(), 2 * 7.5e9);
}

TEST(EstimateTest, WrongRequestsNameTheirOption) {
  const auto refusal = [](EstimateRequest request) -> std::string {
    try {
      estimate(request);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EstimateRequest request;
  EXPECT_THAT(refusal(request), testing::HasSubstr("--num-params"));
  request.num_params = std::nan("");
  EXPECT_THAT(refusal(request), testing::HasSubstr("--num-params"));
  request = paper();
  request.world_size = 0;
  EXPECT_THAT(refusal(request), testing::HasSubstr("--world-size"));
  request = paper();
  request.trainable_params = 8e9;
  EXPECT_THAT(refusal(request), testing::HasSubstr("--trainable-params"));
  request = paper();
  request.device_memory_bytes = 0;
  EXPECT_THAT(refusal(request), testing::HasSubstr("--device-memory"));
}

TEST(EstimateTest, ChoicesAreParsedAndListed) {
  EXPECT_EQ(parse_precision("bf16"), Precision::bf16);
  EXPECT_EQ(parse_optimizer("adamw"), Optimizer::adam);
  EXPECT_EQ(parse_optimizer("sgd-momentum"), Optimizer::sgd_momentum);
  EXPECT_EQ(parse_checkpointing("full"), Checkpointing::full);
  try {
    parse_precision("fp8");
    FAIL() << "fp8 was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("--precision 'fp8'"), testing::HasSubstr("fp32, fp16, bf16")));
  }
  EXPECT_THROW(parse_optimizer(""), Error);
  EXPECT_THROW(parse_checkpointing("some"), Error);
}

}  // namespace
}  // namespace dsat::cost
