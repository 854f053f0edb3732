// Which configuration wins: from all trials at once, and kept while trials end. Trials are made by hand, with nothing
// but what counts.
#include "study/state/best.h"

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

Trial measured(uint64_t id, const std::string& identity, double throughput) {
  Trial trial;
  trial.record.id = id;
  trial.record.outcome = Outcome::completed;
  trial.record.config = {{"name", identity}};
  trial.record.metrics = {{"throughput", throughput}};
  trial.identity = identity;
  return trial;
}

TEST(BestTest, NothingMeasuredMeansNoBest) {
  EXPECT_FALSE(choose_best({}, "throughput", true, std::nullopt));
  Trial failed = measured(0, "a", 5);
  failed.record.outcome = Outcome::failed;
  Trial without = measured(1, "b", 5);
  without.record.metrics = Json();
  Trial odd = measured(2, "c", 5);
  odd.record.metrics = {{"throughput", "fast"}};
  EXPECT_FALSE(choose_best({failed, without, odd}, "throughput", true, 0));
}

TEST(BestTest, TheLargestOrTheSmallestWins) {
  const std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9), measured(2, "c", 2)};
  EXPECT_EQ(choose_best(trials, "throughput", true, std::nullopt)->trial, 1u);
  EXPECT_EQ(choose_best(trials, "throughput", false, std::nullopt)->trial, 2u);
  EXPECT_FALSE(choose_best(trials, "latency", true, std::nullopt));
}

TEST(BestTest, ATieGoesToTheLowerId) {
  const std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9), measured(2, "c", 9)};
  EXPECT_EQ(choose_best(trials, "throughput", true, std::nullopt)->trial, 1u);
  EXPECT_EQ(choose_best({measured(0, "a", 5), measured(1, "b", 5)}, "throughput", false, std::nullopt)->trial, 0u);
}

// The mean of three times 0.1 is 0.10000000000000002 in floating point.
TEST(BestTest, AMeanThatDiffersByRoundingAloneIsATie) {
  const double above = (0.1 + 0.1 + 0.1) / 3;
  ASSERT_GT(above, 0.1);
  const std::vector<Trial> trials{measured(0, "a", 0.1), measured(1, "b", 0.1), measured(2, "b", 0.1),
                                  measured(3, "b", 0.1)};
  EXPECT_EQ(choose_best(trials, "throughput", true, std::nullopt)->trial, 0u);
  EXPECT_EQ(choose_best({measured(0, "a", above), measured(1, "b", 0.1)}, "throughput", false, {})->trial, 0u);
  const BestRecord named = choose_best(trials, "throughput", true, 1).value();
  EXPECT_EQ(named.trial, 0u) << "the searcher's name for one of several that are equal";
  EXPECT_EQ(named.why, "");
  EXPECT_EQ(choose_best(trials, "throughput", true, 1, {true, {}})->trial, 1u) << "measured again, or verified";
  BestSoFar best("throughput", true);
  for (const Trial& trial : {measured(0, "a", 0.1), measured(1, "b", above)}) best.add(trial);
  best.refresh({measured(0, "a", 0.1), measured(1, "b", above)});
  EXPECT_EQ(best.get()->trial, 0u);
}

TEST(BestTest, RepeatsAreOneConfigurationWithTheMeansOfTheirMetrics) {
  std::vector<Trial> trials{measured(0, "a", 10), measured(1, "b", 19), measured(2, "a", 30)};
  trials[0].record.peak_bytes = 100;
  trials[2].record.peak_bytes = 300;
  const std::optional<BestRecord> best = choose_best(trials, "throughput", true, std::nullopt);
  EXPECT_EQ(best->trial, 0u);
  EXPECT_DOUBLE_EQ(best->metric, 20);
  EXPECT_DOUBLE_EQ(best->metrics["throughput"].get<double>(), 20);
  EXPECT_EQ(best->why, "");
  EXPECT_EQ(measured_configurations(trials, "throughput")[0].peak_bytes, 300u);
}

TEST(BestTest, WhatOnlySomeRepeatsMeasuredHasNoMean) {
  std::vector<Trial> trials{measured(0, "a", 10), measured(1, "a", 30)};
  trials[0].record.metrics["step"] = 8;
  const Json metrics = choose_best(trials, "throughput", true, std::nullopt)->metrics;
  EXPECT_FALSE(metrics.contains("step")) << metrics;
}

TEST(BestTest, DuplicatesAreNoMeasurements) {
  Trial twin = measured(1, "a", 1000);
  twin.record.duplicate_of = 0;
  EXPECT_DOUBLE_EQ(choose_best({measured(0, "a", 10), twin}, "throughput", true, std::nullopt)->metric, 10);
}

TEST(BestTest, TheBelievedOneWinsOverTheLuckiestAndSaysWhy) {
  const std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9)};
  const std::optional<BestRecord> best = choose_best(trials, "throughput", true, 0);
  EXPECT_EQ(best->trial, 0u);
  EXPECT_THAT(best->why, AllOf(HasSubstr("names trial 0 (5 samples/s)"), HasSubstr("is trial 1 (9 samples/s)")));
  EXPECT_EQ(choose_best(trials, "throughput", true, 1)->why, "");
}

// A repair took it back, or a raised limit: the searcher names the best of the others.
TEST(BestTest, WhatTheSearcherDoesNotKnowIsNotPassedOver) {
  std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9), measured(2, "c", 7)};
  trials[1].is_asked_for = false;
  EXPECT_EQ(choose_best(trials, "throughput", true, 0)->trial, 1u);
  EXPECT_EQ(choose_best(trials, "throughput", true, 0)->why, "");
  trials.push_back(measured(3, "b", 9));
  trials.back().record.duplicate_of = 1;
  EXPECT_EQ(choose_best(trials, "throughput", true, 0)->trial, 0u) << "it has asked for it since";
}

TEST(BestTest, NumbersThatDifferLateHaveAsManyDigits) {
  const std::vector<Trial> trials{measured(0, "a", 5.00001), measured(1, "b", 5.00002)};
  EXPECT_THAT(choose_best(trials, "throughput", true, 0)->why,
              AllOf(HasSubstr("trial 0 (5.00001 samples/s)"), HasSubstr("trial 1 (5.00002 samples/s)")));
  std::vector<Trial> times{measured(0, "a", 0), measured(1, "b", 0)};
  times[0].record.metrics["latency"] = 143.1e3;
  times[1].record.metrics["latency"] = 142.6e3;
  EXPECT_THAT(choose_best(times, "latency", false, 0)->why,
              AllOf(HasSubstr("trial 0 (143.1 ms)"), HasSubstr("trial 1 (142.6 ms)")));
  std::vector<Trial> rates{measured(0, "a", 0), measured(1, "b", 0)};
  rates[0].record.metrics["FLOPS_per_gpu"] = 141.12e12;
  rates[1].record.metrics["FLOPS_per_gpu"] = 141.13e12;
  EXPECT_THAT(choose_best(rates, "FLOPS_per_gpu", true, 0)->why, HasSubstr("(141.12 TFLOP/s)"));
}

TEST(BestTest, ABelievedTrialThatIsOnlyAsGoodAsAnEarlierOneGivesWayToIt) {
  const std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 5)};
  EXPECT_EQ(choose_best(trials, "throughput", true, 1)->trial, 0u);
  EXPECT_EQ(choose_best(trials, "throughput", true, 1)->why, "");
}

TEST(BestTest, ABelievedTrialThatWasNotMeasuredOrIsUnknownIsPassedOver) {
  std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9)};
  trials[0].record.outcome = Outcome::failed;
  EXPECT_EQ(choose_best(trials, "throughput", true, 0)->trial, 1u);
  EXPECT_EQ(choose_best(trials, "throughput", true, 77)->trial, 1u);
}

TEST(BestTest, ABelievedRepeatStandsForItsConfiguration) {
  const std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9), measured(2, "a", 5)};
  EXPECT_EQ(choose_best(trials, "throughput", true, 2)->trial, 0u);
}

TEST(BestTest, WhatFailsWhenMeasuredAgainIsTheBestOnlyWhereNoOtherIsLeft) {
  Trial again = measured(2, "a", 0);
  again.phase = Phase::comparison;
  again.record.outcome = Outcome::timed_out;
  EXPECT_EQ(choose_best({measured(0, "a", 10), measured(1, "b", 9), again}, "throughput", true, 0)->trial, 1u);
  EXPECT_EQ(choose_best({measured(0, "a", 10), again}, "throughput", true, 0)->trial, 0u);
  again.phase = Phase::verification;
  EXPECT_FALSE(choose_best({measured(0, "a", 10), again}, "throughput", true, 0));
}

TEST(BestTest, WhatRanOutOfMemoryAndWentOnIsTheBestOnlyWhereNoOtherIsLeft) {
  std::vector<Trial> trials{measured(0, "a", 30)};
  trials[0].end.emplace().ran_short = true;
  EXPECT_EQ(choose_best(trials, "throughput", true, std::nullopt)->trial, 0u);
  BestSoFar best("throughput", true);
  best.add(trials[0]);
  best.refresh(trials);
  EXPECT_EQ(best.get()->trial, 0u);
  for (const Trial& trial : {measured(1, "b", 10), measured(2, "c", 9)}) {
    trials.push_back(trial);
    best.add(trial);
  }
  EXPECT_TRUE(best.refresh(trials));
  EXPECT_EQ(best.get()->trial, 1u);
  EXPECT_EQ(choose_best(trials, "throughput", true, 0)->trial, 1u) << "even where the searcher names it";
}

// BestSoFar decides as choose_best does, whatever the order of the ends.
TEST(BestSoFarTest, KeepsTheBestWhileTrialsEnd) {
  const std::vector<Trial> trials{measured(0, "a", 5), measured(1, "b", 9), measured(2, "c", 9), measured(3, "d", 2)};
  BestSoFar best("throughput", true);
  EXPECT_FALSE(best.refresh({}));
  best.add(trials[0]);
  EXPECT_TRUE(best.refresh(trials));
  EXPECT_EQ(best.get()->trial, 0u);
  best.add(trials[2]);
  EXPECT_TRUE(best.refresh({trials[0], trials[2]}));
  best.add(trials[3]);
  EXPECT_FALSE(best.refresh({trials[0], trials[2], trials[3]})) << "a worse trial changes nothing";
  best.add(trials[1]);
  EXPECT_TRUE(best.refresh(trials)) << "a tie goes to the lower id";
  EXPECT_EQ(best.get()->trial, 1u);
}

TEST(BestSoFarTest, ARepeatPutsTheMeansInQuestion) {
  std::vector<Trial> trials{measured(0, "a", 10), measured(1, "b", 9)};
  BestSoFar best("throughput", true);
  for (const Trial& trial : trials) best.add(trial);
  best.refresh(trials);
  trials.push_back(measured(2, "a", 2));
  trials.back().earlier_runs = 1;
  best.add(trials.back());
  EXPECT_TRUE(best.refresh(trials));
  EXPECT_EQ(best.get()->trial, 1u) << "the mean of 10 and 2 is below 9";
}

TEST(BestSoFarTest, ABestThatFailedAgainGivesWayToASlowerOne) {
  std::vector<Trial> trials{measured(0, "a", 10), measured(1, "a", 0)};
  trials[1].phase = Phase::comparison;
  trials[1].record.outcome = Outcome::out_of_memory;
  BestSoFar best("throughput", true);
  for (const Trial& trial : trials) best.add(trial);
  best.refresh(trials);
  EXPECT_EQ(best.get()->trial, 0u) << "no other is left";
  trials.push_back(measured(2, "b", 4));
  best.add(trials.back());
  EXPECT_TRUE(best.refresh(trials));
  EXPECT_EQ(best.get()->trial, 2u);
}

TEST(BestSoFarTest, TheTrialThatTheSearcherNamesTakesItsPlace) {
  const std::vector<Trial> trials{measured(0, "a", 10), measured(1, "b", 9)};
  BestSoFar best("throughput", true);
  for (const Trial& trial : trials) best.add(trial);
  best.refresh(trials);
  best.set_named(1);
  EXPECT_TRUE(best.refresh(trials));
  EXPECT_EQ(best.get()->trial, 1u);
  EXPECT_FALSE(best.refresh(trials)) << "decided already";
}

}  // namespace
}  // namespace dsat::host
