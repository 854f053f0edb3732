// Which metrics are JSON, and what their mean is.
// Refusals name the metric.
#include "dsat/trainer/metrics.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Metrics, AreNumbersTextsJsonAndTensorsOfOneElement) {
  const Metrics metrics{{"loss", at::full({}, 0.5)}, {"step", 3}, {"name", "x"}, {"list", Json::array({1, 2})}};
  EXPECT_EQ(to_json(metrics, "train_batch"), Json({{"list", {1, 2}}, {"loss", 0.5}, {"name", "x"}, {"step", 3}}));
  EXPECT_EQ(to_json({{"count", at::full({1}, 7, at::kLong)}, {"flag", at::full({}, true, at::kBool)}}, "x"),
            Json({{"count", 7}, {"flag", true}}));
}

TEST(Metrics, NameTheKeyThatIsNotJson) {
  const auto refused = [](Metrics metrics, const std::string& key, const std::string& why) {
    EXPECT_THAT([&] { to_json(metrics, "train_batch"); },
                ThrowsMessage<Error>(AllOf(HasSubstr("'" + key + "' of train_batch"), HasSubstr(why))));
  };
  refused({{"loss", std::nan("")}}, "loss", "NaN");
  refused({{"loss", at::full({}, -std::numeric_limits<double>::infinity())}}, "loss", "-Infinity");
  refused({{"logits", at::zeros({2, 3})}}, "logits", "[2, 3]");
  refused({{"unset", at::Tensor()}}, "unset", "never set");
  refused({{"deep", Json{{"a", {1.0, std::nan("")}}}}}, "deep.a.1", "NaN");
  refused({{"text", std::string("\xFF")}}, "text", "UTF-8");
  refused({{"bytes", Json::binary({1, 2})}}, "bytes", "binary");
}

TEST(MetricMean, AveragesNumbersOverBatches) {
  MetricMean mean;
  mean.add({{"loss", 1.0}, {"dtype", "bf16"}});
  mean.add({{"loss", 2}, {"dtype", "bf16"}, {"seldom", 5}});
  EXPECT_EQ(mean.mean(), Json({{"loss", 1.5}, {"seldom", 5.0}, {"dtype", "bf16"}}));
}

TEST(MetricMean, CountsEveryBatchOfEveryRankOnce) {
  MetricMean first, second, all;
  first.add({{"loss", 1.0}});
  second.add({{"loss", 3.0}});
  second.add({{"loss", 5.0}});
  for (const MetricMean* rank : {&first, &second}) all.add_partial(rank->partial());
  EXPECT_EQ(all.mean(), Json({{"loss", 3.0}}));
}

TEST(MetricMean, RefusesWhatHasNoMean) {
  MetricMean mean;
  mean.add({{"matrix", {1, 2}}});
  EXPECT_THAT(
      [&] {
        mean.add({{"matrix", {1, 3}}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("'matrix'"), HasSubstr("wrap_reducer"))));
  EXPECT_THROW(mean.add({{"matrix", 1}}), Error);
}

}  // namespace
}  // namespace dsat::trainer
