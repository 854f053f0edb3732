// Who stays in the finals and who is named, who is compared and for how long, with answers made by hand; and which
// trials a gain is reckoned from.
#include "finals/finals.h"

#include <gmock/gmock.h>

#include <cmath>

#include "finals/comparison.h"
#include "finals/gain.h"
#include "finals/verification.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kMeasured = "throughput";

// A strategy that asks for trials in rounds. Its configurations have numbers: {"is": 1}.
class RoundsTest : public ::testing::Test, public RequestAnswers {
 protected:
  explicit RoundsTest(HostStrategy& strategy) : strategy_(strategy) {}

  std::optional<uint64_t> create_trial(const Op& op) override {
    asked_.emplace_back(next_, op.overrides.at("is").get<int>());
    return next_++;
  }
  uint64_t next_id() const override { return next_; }

  // Plenty of repeats without noise: a difference of some percent is sure.
  static Repeats sure() { return {0.0002, 100}; }
  // The same with 2 % of noise.
  static Repeats noisy() { return {0.04, 100}; }
  void start_with(Json brief) {
    StrategyEvent event;
    event.kind = StrategyEvent::Kind::start;
    event.study = {{"metric", kMeasured}, {"maximise", true}, {"reason", "done"}, {"budget", 99}};
    event.study.update(brief);
    take(event);
  }
  // Ends the trials of a round; a configuration that is not there has failed. Returns which were measured.
  std::vector<int> end_round(const std::map<int, double>& throughputs) {
    const auto round = std::exchange(asked_, {});
    std::vector<int> measured;
    for (const auto& [trial, configuration] : round) {
      measured.push_back(configuration);
      StrategyEvent event;
      event.trial = trial;
      const auto found = throughputs.find(configuration);
      if (found != throughputs.end()) {
        event.kind = StrategyEvent::Kind::result;
        event.metrics = {{kMeasured, found->second}};
        take(event);
      }
      event.kind = StrategyEvent::Kind::exited;
      event.outcome = static_cast<int>(found != throughputs.end() ? Outcome::completed : Outcome::failed);
      take(event);
    }
    return measured;
  }
  std::vector<int> in_the_next_round() const {
    std::vector<int> configurations;
    for (const auto& asked : asked_) configurations.push_back(asked.second);
    return configurations;
  }

  std::optional<uint64_t> named_;
  bool is_over_ = false;

 private:
  void take(const StrategyEvent& event) {
    for (const Op& op : strategy_.handle(event, *this)) {
      if (op.kind != Op::Kind::finish) continue;
      is_over_ = true;
      named_ = op.trial;
    }
  }
  HostStrategy& strategy_;
  std::vector<std::pair<uint64_t, int>> asked_;
  uint64_t next_ = 10;
};

// Finals of configurations that were measured once.
class FinalsTest : public RoundsTest {
 protected:
  FinalsTest() : RoundsTest(finals_) {}

  // `simpler`: configurations from 100 on, which are expected to cost nothing.
  void start(const std::vector<double>& throughputs, const Repeats& others = sure(), int simpler = 0) {
    Json finalists = Json::array();
    for (size_t i = 0; i < throughputs.size(); ++i) {
      finalists.push_back({{"trial", i}, {"overrides", {{"is", i}}}, {"values", {std::log(throughputs[i])}}});
    }
    Json candidates = Json::array();
    for (int i = 0; i < simpler; ++i) candidates.push_back(to_json(Simpler{{{"is", 100 + i}}, "simpler", 0, 0.01}));
    start_with({{"finalists", finalists}, {"others", to_json(others)}, {"simpler", candidates}});
  }

 private:
  Finals finals_;
};

TEST_F(FinalsTest, WhatCannotWinAnyMoreIsNotMeasuredAgain) {
  start({100, 99.8, 99.9}, Repeats{0.25, 100});
  EXPECT_THAT(in_the_next_round(), ElementsAre(0, 1, 2));
  end_round({{0, 100}, {1, 50}, {2, 99.9}});
  EXPECT_THAT(in_the_next_round(), ElementsAre(0, 2));
}

// Where two measured the same, another round tells nothing unless noise may hide more than the tolerance.
TEST_F(FinalsTest, TheNoiseSaysHowManyRoundsThereAre) {
  start({100, 100}, noisy());
  end_round({{0, 100}, {1, 100}});
  EXPECT_TRUE(is_over_);
}

TEST_F(FinalsTest, OneThatFailsIsOutHoweverFastItWas) {
  start({100, 101}, noisy());
  end_round({{0, 100}});
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(named_, 0u);
  EXPECT_THAT(in_the_next_round(), IsEmpty());
}

TEST_F(FinalsTest, TheBestMeanIsNamedAfterTheLastRound) {
  start({100, 100.1}, Repeats{0.25, 100});
  int rounds = 0;
  for (; !is_over_; ++rounds) end_round({{0, 100.2}, {1, 100}});
  EXPECT_EQ(rounds, kMostRounds);
  EXPECT_EQ(named_, 0u);
}

TEST_F(FinalsTest, ASimplerOneThatIsHardlySlowerWins) {
  start({100}, sure(), 1);
  EXPECT_THAT(end_round({{100, 99.8}}), ElementsAre(100));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(named_, 10u);
}

TEST_F(FinalsTest, ASimplerOneThatIsClearlySlowerGivesWayToTheNext) {
  start({100}, sure(), 2);
  end_round({{100, 97}});
  EXPECT_THAT(end_round({{101, 99.9}}), ElementsAre(101));
  EXPECT_EQ(named_, 11u);
}

TEST_F(FinalsTest, WhereAllSimplerOnesFailTheBestStays) {
  start({100}, sure(), 2);
  end_round({});
  end_round({{101, 90}});
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(named_, 0u);
}

TEST_F(FinalsTest, RivalsAreMeasuredAgainBesideTheSimplerOne) {
  start({100, 99.9}, noisy(), 1);
  end_round({{100, 100}});
  EXPECT_THAT(end_round({{0, 100}, {1, 120}, {100, 100}}), ElementsAre(0, 1, 100));
  while (!is_over_) end_round({{0, 100}, {1, 120}, {100, 100}});
  EXPECT_EQ(named_, 1u) << "the simpler one is clearly slower than this rival";
}

// The user's own configuration is 0 (trial 0), the best is 1 (trial 3); each was measured once.
class ComparisonTest : public RoundsTest {
 protected:
  ComparisonTest() : RoundsTest(comparison_) {}

  void start(const Repeats& others, const std::vector<double>& own = {std::log(50.0)}, int budget = 99) {
    start_with({{"budget", budget},
                {"best", {{"trial", 3}, {"overrides", {{"is", 1}}}, {"values", {std::log(100.0)}}}},
                {"own", {{"trial", 0}, {"overrides", {{"is", 0}}}, {"values", own}}},
                {"own_may_win", true},
                {"others", to_json(others)}});
  }

 private:
  BestAgainstOwn comparison_;
};

TEST_F(ComparisonTest, BothAreMeasuredAndADifferenceThatIsSureEndsIt) {
  start(sure());
  EXPECT_THAT(end_round({{0, 50}, {1, 100}}), ElementsAre(1, 0));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(named_, 3u);
}

TEST_F(ComparisonTest, NoiseEndsItAfterSoManyOfEach) {
  start(Repeats());
  int rounds = 0;
  for (; !is_over_ && rounds < 20; ++rounds)
    end_round({{0, rounds % 2 == 0 ? 40 : 70}, {1, rounds % 2 == 0 ? 90 : 130}});
  EXPECT_EQ(rounds, kMostComparisons);
  EXPECT_EQ(named_, 3u);
}

TEST_F(ComparisonTest, WhereItFavoursYourOwnThatIsNamed) {
  start(sure());
  while (!is_over_) end_round({{0, 200}, {1, 90}});
  EXPECT_EQ(named_, 0u);
}

// The baseline is chosen by nobody, so nothing makes its earlier measurements too good.
TEST_F(ComparisonTest, WhatYourOwnGaveBeforeCounts) {
  start(sure(), std::vector<double>(9, std::log(103.0)));
  while (!is_over_) end_round({{0, 99}, {1, 100}});
  EXPECT_EQ(named_, 0u);
}

TEST_F(ComparisonTest, WhatYourOwnGaveOnAFasterMachineDoesNot) {
  start(sure(), {std::log(220.0)});
  while (!is_over_) end_round({{0, 50}, {1, 100}});
  EXPECT_EQ(named_, 3u);
}

// The last trial goes to the best. Nothing shows whether the machine was faster when the own was measured.
TEST_F(ComparisonTest, WhatYourOwnGaveBeforeDoesNotWinAlone) {
  start(Repeats(), {std::log(110.0)}, 1);
  EXPECT_THAT(end_round({{1, 100}}), ElementsAre(1));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(named_, 3u);
}

// Grants every request.
class Granting : public RequestAnswers {
 public:
  std::optional<uint64_t> create_trial(const Op&) override { return next_++; }
  uint64_t next_id() const override { return next_; }

 private:
  uint64_t next_ = 10;
};

TEST(VerificationTest, ATrialThatWasLostSaysNothingAgainstTheBest) {
  for (const Outcome outcome : {Outcome::lost, Outcome::stopped, Outcome::failed}) {
    Granting answers;
    Verification verification;
    StrategyEvent event;
    event.kind = StrategyEvent::Kind::start;
    event.study = {
        {"steps", 5},
        {"reason", "done"},
        {"candidates", {{{"trial", 3}, {"overrides", Json::object()}}, {{"trial", 2}, {"overrides", Json::object()}}}}};
    verification.handle(event, answers);
    event.kind = StrategyEvent::Kind::exited;
    event.trial = 10;
    event.outcome = static_cast<int>(outcome);
    const std::vector<Op> ops = verification.handle(event, answers);
    ASSERT_EQ(ops.size(), 1u);
    if (outcome == Outcome::failed) {
      EXPECT_NE(ops[0].kind, Op::Kind::finish) << "the next one is asked to";
    } else {
      EXPECT_EQ(ops[0].trial, 3u);
    }
  }
}

Trial measured(const std::string& identity, double throughput) {
  Trial trial;
  trial.identity = identity;
  trial.record.outcome = Outcome::completed;
  trial.record.metrics = {{kMeasured, throughput}};
  return trial;
}

TEST(GainTest, OnlyWhatWasMeasuredCounts) {
  Trial copy = measured("a", 100);
  copy.record.duplicate_of = 0;
  Trial model_info = measured("a", 7);
  model_info.model_info = true;
  Trial failed = measured("a", 7);
  failed.record.outcome = Outcome::failed;
  const std::vector<Trial> trials{measured("a", 100), copy, model_info, failed, measured("b", 5)};
  EXPECT_THAT(values_of(trials, "a", kMeasured, true), ElementsAre(std::log(100.0)));
  EXPECT_EQ(repeats_but(trials, kMeasured, true, "b", "c").degrees, 0) << "a copy is no repeat";
}

TEST(GainTest, AMetricThatIsToBeSmallTurnsTheRatioRound) {
  std::vector<Trial> trials{measured("own", 10), measured("best", 5)};
  trials[1].record.id = 1;
  EXPECT_NEAR(gain_over_own(trials, kMeasured, false, "own", 1)->ratio, 2, 1e-12);
  EXPECT_NEAR(gain_over_own(trials, kMeasured, true, "own", 1)->ratio, 0.5, 1e-12);
}

// What was measured before the choice flatters the best.
TEST(GainTest, TheRatioIsThatOfTheComparison) {
  std::vector<Trial> trials{measured("own", 10), measured("best", 20), measured("best", 15), measured("own", 10)};
  for (size_t i = 0; i < trials.size(); ++i) trials[i].record.id = i;
  trials[2].phase = trials[3].phase = Phase::comparison;
  const std::optional<Gain> gain = gain_over_own(trials, kMeasured, true, "own", 1);
  ASSERT_TRUE(gain);
  EXPECT_NEAR(gain->ratio, 1.5, 1e-9);
  EXPECT_LT(gain->low, gain->ratio);
  EXPECT_GT(gain->high, gain->ratio);
  EXPECT_EQ(gain->left_out, 1);
  const Json json = to_json(*gain);
  EXPECT_NEAR(json["of_best"]["value"].get<double>(), 15, 1e-9);
  EXPECT_NEAR(json["of_own"]["value"].get<double>(), 10, 1e-9);
  EXPECT_EQ(json["of_best"]["measurements"], 1);
  EXPECT_EQ(json["left_out"], 1);
}

// It was chosen for being simple, so its measurement in the finals flatters nobody.
TEST(GainTest, WhatBeganInTheFinalsCountsWithAllItsMeasurements) {
  std::vector<Trial> trials{measured("own", 10), measured("best", 20), measured("simpler", 15)};
  for (size_t i = 0; i < trials.size(); ++i) trials[i].record.id = i;
  trials[2].phase = Phase::finals;
  const std::optional<Gain> gain = gain_over_own(trials, kMeasured, true, "own", 2);
  ASSERT_TRUE(gain);
  EXPECT_TRUE(gain->low);
  EXPECT_NEAR(gain->ratio, 1.5, 1e-9);
  EXPECT_EQ(gain->left_out, 0);
}

}  // namespace
}  // namespace dsat::host
