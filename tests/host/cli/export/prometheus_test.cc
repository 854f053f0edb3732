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
  facts.record.dir = "/runs/1";
  return facts;
}

TEST(Prometheus, QuotesAndBackslashesOfANameAreEscaped) {
  EXPECT_THAT(prometheus_of(facts_named("a\"b\\c")),
              HasSubstr(R"(dsat_trials_started{study="a\"b\\c",dir="/runs/1"} 0)"));
}

TEST(Prometheus, AStudyWithoutANameHasThatOfItsFolder) {
  host::StudyFacts facts = facts_named("");
  facts.record.dir = "/a/runs/tuesday";
  EXPECT_THAT(prometheus_of(facts), HasSubstr("{study=\"tuesday\","));
  facts.record.study = Json::object();
  EXPECT_THAT(prometheus_of(facts), HasSubstr("{study=\"tuesday\","));
}

TEST(Prometheus, StudiesOfOneScriptDifferInTheirFolders) {
  host::StudyFacts facts = facts_named("train");
  EXPECT_THAT(prometheus_of(facts), HasSubstr("dsat_trials_running{study=\"train\",dir=\"/runs/1\"} 0"));
  facts.record.dir = "/runs/x/../2/";
  EXPECT_THAT(prometheus_of(facts), HasSubstr("dsat_trials_running{study=\"train\",dir=\"/runs/2\"} 0"));
}

TEST(Prometheus, TheBestAndItsGainAreThereOnceThereIsABest) {
  host::StudyFacts facts = facts_named("s");
  EXPECT_THAT(prometheus_of(facts), Not(HasSubstr("dsat_best")));
  facts.record.best = host::BestRecord{};
  facts.record.best->trial = 3;
  facts.record.best->metric = 7.5;
  facts.gain = host::Gain{2, 1.5, std::numeric_limits<double>::infinity(), 0};
  const std::string text = prometheus_of(facts);
  EXPECT_THAT(text, HasSubstr("dsat_best_value{study=\"s\",dir=\"/runs/1\",metric=\"throughput\"} 7.5\n"));
  EXPECT_THAT(text, HasSubstr("dsat_best_trial{study=\"s\",dir=\"/runs/1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("dsat_gain_ratio_low{study=\"s\",dir=\"/runs/1\"} 1.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("dsat_gain_ratio_high")));
}

}  // namespace
}  // namespace dsat::cli
