// Which of the printed numbers count (--metric-pattern), and why there is no value.
#include "outputs/printed_metric.h"

#include <gmock/gmock.h>

#include <cmath>

namespace dsat::host {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<std::optional<double>>;

constexpr ProfileWindow kWindow{3, 5};

PrintedMetric read(const Numbers& numbers, bool is_measured = false) {
  return printed_metric(numbers, "its group fits 'x'", kWindow, is_measured);
}

TEST(PrintedMetric, IsTheMedianAfterTheWarmUp) {
  const PrintedMetric metric = read({900, std::nullopt, 800, 5, 9, 6, 700});
  EXPECT_EQ(metric.value, 6);
  EXPECT_TRUE(metric.is_full);
  EXPECT_EQ(metric.problem, "");
}

TEST(PrintedMetric, AWindowThatIsNotFullIsNone) {
  const PrintedMetric metric = read({1, 2, 3, 4});
  EXPECT_FALSE(metric.is_full || metric.value);
  EXPECT_THAT(metric.problem, HasSubstr("4 printed lines fit --metric-pattern, and 6 are needed: 3 as warm-up"));
  EXPECT_THAT(read({1}).problem, HasSubstr("1 printed line fits"));
  EXPECT_THAT(read({}).problem, HasSubstr("no line"));
}

TEST(PrintedMetric, APartOfTheWindowCountsBesideAnotherMeasurement) {
  EXPECT_EQ(read({1, 2, 3, 4, 6}, true).value, 5);
  EXPECT_THAT(read({1, 2, 3}, true).problem, HasSubstr("3 printed lines"));
}

TEST(PrintedMetric, ANumberThatIsNoneHasItsReason) {
  EXPECT_EQ(read({1, 2, 3, 4, std::nullopt, 6}).problem, "its group fits 'x'");
  EXPECT_THAT(read({1, 2, 3, 4, 0, 6}).problem, HasSubstr("is 0: it must be above 0"));
  EXPECT_THAT(read({1, 2, 3, 4, std::nan(""), 6}).problem, HasSubstr("must be above 0"));
}

}  // namespace
}  // namespace dsat::host
