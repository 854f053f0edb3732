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

TEST(Metrics, ATensorOrANumberByItselfIsTheLoss) {
  EXPECT_EQ(to_json(at::full({}, 0.5), "train_batch"), Json({{"loss", 0.5}}));
  EXPECT_EQ(to_json(0.25, "train_batch"), Json({{"loss", 0.25}}));
  EXPECT_EQ(to_json({}, "train_batch"), Json::object());
}

TEST(Metrics, AreAssignedByName) {
  Metrics metrics = at::full({}, 0.5);
  metrics["lr"] = 0.1;
  metrics["norm"] = at::full({}, 2);
  EXPECT_EQ(to_json(metrics, "train_batch"), Json({{"loss", 0.5}, {"lr", 0.1}, {"norm", 2}}));
}

TEST(Metrics, TensorsOfMoreElementsAreArrays) {
  EXPECT_EQ(to_json({{"hits", at::full({2, 3}, 7, at::kLong)}}, "x")["hits"], Json::parse("[[7, 7, 7], [7, 7, 7]]"));
}

TEST(Metrics, NameTheKeyThatIsNotJson) {
  const auto refused = [](Metrics metrics, const std::string& key, const std::string& why) {
    EXPECT_THAT([&] { to_json(metrics, "train_batch"); },
                ThrowsMessage<Error>(AllOf(HasSubstr("'" + key + "' of train_batch"), HasSubstr(why))));
  };
  refused({{"loss", std::nan("")}}, "loss", "NaN, which JSON cannot hold: a loss becomes so where training diverges");
  refused({{"loss", at::full({}, -std::numeric_limits<double>::infinity())}}, "loss", "-Infinity");
  refused({{"logits", at::zeros({64, 512})}}, "logits", "[64, 512]");
  refused({{"array", at::full({2}, std::nan(""))}}, "array.0", "NaN");
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

TEST(MetricMean, AveragesArraysElementByElement) {
  MetricMean first, second, all;
  first.add({{"hits", Json::parse("[[1, 2], [3, 4]]")}});
  second.add({{"hits", Json::parse("[[3, 4], [5, 7]]")}});
  for (const MetricMean* rank : {&first, &second}) all.add_partial(rank->partial());
  EXPECT_EQ(all.mean()["hits"], Json::parse("[[2.0, 3.0], [4.0, 5.5]]"));
}

TEST(MetricMean, RefusesWhatHasNoMean) {
  MetricMean mean;
  mean.add({{"dtype", "bf16"}, {"matrix", {1, 2}}});
  for (const Json& other :
       {Json{{"dtype", "fp32"}}, Json{{"dtype", 1}}, Json{{"matrix", {1, 2, 3}}}, Json{{"matrix", 1}}}) {
    EXPECT_THAT([&] { mean.add(other); },
                ThrowsMessage<Error>(AllOf(HasSubstr("'" + other.begin().key() + "'"), HasSubstr("wrap_reducer"))));
  }
}

}  // namespace
}  // namespace dsat::trainer
