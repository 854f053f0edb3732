// One line that cannot be read costs the whole scrape: labels are escaped, and what is no number is left out.
#include <gmock/gmock.h>

#include <limits>

#include "export/formats.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

host::StudyFacts facts_named(const std::string& name) {
  host::StudyFacts facts;
  facts.metric = "throughput";
  facts.record.study = {{"name", name}};
  return facts;
}

TEST(Prometheus, QuotesAndBackslashesOfANameAreEscaped) {
  EXPECT_THAT(prometheus_of(facts_named("a\"b\\c")), HasSubstr(R"(dsat_trials_started{study="a\"b\\c"} 0)"));
}

TEST(Prometheus, AStudyWithoutANameHasThatOfItsFolder) {
  host::StudyFacts facts = facts_named("");
  facts.record.dir = "/a/runs/tuesday";
  EXPECT_THAT(prometheus_of(facts), HasSubstr("{study=\"tuesday\"}"));
  facts.record.study = Json::object();
  EXPECT_THAT(prometheus_of(facts), HasSubstr("{study=\"tuesday\"}"));
}

TEST(Prometheus, TheBestAndItsGainAreThereOnceThereIsABest) {
  host::StudyFacts facts = facts_named("s");
  EXPECT_THAT(prometheus_of(facts), Not(HasSubstr("dsat_best")));
  facts.record.best = host::BestRecord{};
  facts.record.best->trial = 3;
  facts.record.best->metric = 7.5;
  facts.gain = host::Gain{2, 1.5, std::numeric_limits<double>::infinity(), 0};
  const std::string text = prometheus_of(facts);
  EXPECT_THAT(text, HasSubstr("dsat_best_value{study=\"s\",metric=\"throughput\"} 7.5\n"));
  EXPECT_THAT(text, HasSubstr("dsat_best_trial{study=\"s\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("dsat_gain_ratio_low{study=\"s\"} 1.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("dsat_gain_ratio_high")));
}

}  // namespace
}  // namespace dsat::cli
