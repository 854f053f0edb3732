// Machines that become slower while a study runs, and machines that are only noisy.
#include "finals/drift.h"

#include <gmock/gmock.h>

#include <cmath>

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Trial> in_order(const std::vector<std::pair<std::string, double>>& measured) {
  std::vector<Trial> all;
  for (const auto& [identity, throughput] : measured) {
    Trial trial;
    trial.record.id = all.size();
    trial.identity = identity;
    trial.record.outcome = Outcome::completed;
    trial.record.metrics = {{"throughput", throughput}};
    all.push_back(std::move(trial));
  }
  return all;
}

TEST(DriftTest, AMachineThatIsHalfAsFastLaterIsNamed) {
  const auto slower = in_order({{"own", 10}, {"a", 20}, {"b", 21}, {"own", 5.1}, {"a", 10}, {"own", 5}, {"a", 9.8}});
  ASSERT_TRUE(drift_of(slower, "throughput", true));
  EXPECT_LT(*drift_of(slower, "throughput", true), 0.7);
  EXPECT_THAT(drift_text(slower, "throughput", true), HasSubstr("x as fast at the end"));
}

TEST(DriftTest, NoiseIsNoDrift) {
  const auto noisy = in_order({{"own", 10}, {"a", 20}, {"own", 10.3}, {"a", 19.6}, {"own", 9.9}, {"a", 20.2}});
  EXPECT_FALSE(drift_of(noisy, "throughput", true));
  EXPECT_EQ(drift_text(noisy, "throughput", true), "");
}

TEST(DriftTest, OnePairShowsNothing) {
  EXPECT_FALSE(drift_of(in_order({{"own", 10}, {"own", 5}}), "throughput", true));
  EXPECT_FALSE(drift_of({}, "throughput", true));
}

TEST(DriftTest, WhatWasMeasuredBeforeTheChangeDoesNotCount) {
  const Repeats sure{0.0002, 100};
  EXPECT_THAT(comparable({std::log(12.2)}, {std::log(3.3)}, sure), ElementsAre(std::log(3.3)));
  EXPECT_EQ(comparable({std::log(12.2)}, {std::log(12.1)}, sure).size(), 2u);
  EXPECT_THAT(comparable({1.0}, {}, sure), ElementsAre(1.0));
}

}  // namespace
}  // namespace dsat::host
