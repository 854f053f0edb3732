// Reducers over ranks and phases.
// The gather over ranks is a function of the test.
#include "dsat/trainer/metric_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
std::vector<Json> alone(const Json& mine) { return {mine}; }

Json sum(const std::vector<Json>& values) {
  int64_t total = 0;
  for (const Json& value : values) total += value.get<int64_t>();
  return total;
}

class Largest : public MetricReducer {
 public:
  void reset() override { largest_ = 0; }
  void update(const Json& value) override { largest_ = std::max(largest_, value.get<int>()); }
  Json per_slot_reduce() override { return largest_; }
  Json cross_slot_reduce(const std::vector<Json>& per_slot) override {
    int largest = 0;
    for (const Json& value : per_slot) largest = std::max(largest, value.get<int>());
    return {{"largest", largest}, {"slots", per_slot.size()}};
  }

 private:
  int largest_ = 0;
};

TEST(Reducers, GiveAFunctionOneFlatListOfAllRanksValues) {
  Reducers reducers;
  const auto reducer = make_reducer([](const std::vector<Json>& values) { return Json(values); });
  reducers.add(reducer, "all", true, true);
  reducer->update(1);
  reducer->update(2);
  const auto two_ranks = [](const Json& mine) { return std::vector<Json>{mine, Json::array({Json::array({3})})}; };
  EXPECT_EQ(reducers.reduce(Phase::training, two_ranks), Json({{"all", {1, 2, 3}}}));
}

TEST(Reducers, TakeTheMetricsOfAnUnnamedOneAsTheyAre) {
  Reducers reducers;
  const auto reducer = std::make_shared<Largest>();
  reducers.add(reducer, std::nullopt, true, true);
  reducer->update(4);
  reducer->update(2);
  const auto two_ranks = [](const Json& mine) { return std::vector<Json>{mine, Json::array({7})}; };
  EXPECT_EQ(reducers.reduce(Phase::validation, two_ranks), Json({{"largest", 7}, {"slots", 2}}));
}

TEST(Reducers, RunAndResetInTheirPhaseOnly) {
  Reducers reducers;
  const auto training = make_reducer(sum), validation = make_reducer(sum);
  reducers.add(training, "t", true, false);
  reducers.add(validation, "v", false, true);
  training->update(1);
  validation->update(2);
  reducers.reset(Phase::training);
  EXPECT_EQ(reducers.reduce(Phase::training, alone), Json({{"t", 0}}));
  EXPECT_EQ(reducers.reduce(Phase::validation, alone), Json({{"v", 2}}));
}

TEST(Reducers, RefuseWhatCannotBeReported) {
  Reducers reducers;
  EXPECT_THAT([&] { reducers.add(nullptr, "x", true, true); }, ThrowsMessage<Error>(HasSubstr("null")));
  EXPECT_THAT([&] { reducers.add(make_reducer(sum), "x", false, false); }, ThrowsMessage<Error>(HasSubstr("neither")));
  EXPECT_THAT([] { make_reducer(nullptr); }, ThrowsMessage<Error>(HasSubstr("empty")));
  reducers.add(make_reducer(sum), "x", true, true);
  EXPECT_THAT([&] { reducers.add(make_reducer(sum), "x", true, true); }, ThrowsMessage<Error>(HasSubstr("'x'")));
  reducers.add(make_reducer(sum), std::nullopt, true, false);
  EXPECT_THAT([&] { reducers.reduce(Phase::training, alone); }, ThrowsMessage<Error>(HasSubstr("without a name")));
}

TEST(AddMetrics, RefusesAKeyOfBoth) {
  Json metrics{{"loss", 1}};
  EXPECT_THAT([&] { add_metrics(metrics, {{"loss", 2}}); }, ThrowsMessage<Error>(HasSubstr("'loss' is reported")));
}

}  // namespace
}  // namespace dsat::trainer
