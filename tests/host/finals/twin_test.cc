// Which twin follows which, and who is named, with answers made by hand.
#include "finals/twin.h"

#include <gmock/gmock.h>

#include "dsat/config/batch.h"
#include "finals/finals.h"
#include "finals/twin_check.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Overrides have numbers: {"is": 1}.
class TwinTest : public ::testing::Test, public RequestAnswers {
 protected:
  std::optional<uint64_t> create_trial(const Op& op) override {
    if (static_cast<int>(asked_.size()) == most_) return std::nullopt;
    asked_.push_back(op.overrides.at("is").get<int>());
    return next_++;
  }
  uint64_t next_id() const override { return next_; }

  static Json candidate(uint64_t trial, const std::string& keys, const Json& overrides, const Json& smaller = nullptr) {
    return {{"trial", trial}, {"keys", keys}, {"overrides", overrides}, {"smaller", smaller}};
  }
  static Json with(int is) { return {{"is", is}}; }

  void start(const Json& candidates, int runs = 2, int budget = 99) {
    StrategyEvent event;
    event.kind = StrategyEvent::Kind::start;
    event.study = {{"own", {{"trial", 0}, {"overrides", {{"is", 100}}}, {"runs", runs}}},
                   {"candidates", candidates},
                   {"budget", budget},
                   {"reason", "done"}};
    take(event);
  }
  void end(Outcome outcome) {
    StrategyEvent event;
    event.kind = StrategyEvent::Kind::exited;
    event.trial = next_ - 1;
    event.outcome = static_cast<int>(outcome);
    take(event);
  }

  std::vector<int> asked_;
  int most_ = 99;
  std::optional<uint64_t> named_;
  bool is_over_ = false;

 private:
  void take(const StrategyEvent& event) {
    for (const Op& op : twin_.handle(event, *this)) {
      if (op.kind != Op::Kind::finish) continue;
      is_over_ = true;
      named_ = op.trial;
    }
  }
  Twin twin_;
  uint64_t next_ = 50;
};

TEST_F(TwinTest, OneTrialForABestThatAgrees) {
  start({candidate(7, "a", with(1)), candidate(8, "b", with(2))});
  EXPECT_THAT(asked_, ElementsAre(1));
  end(Outcome::completed);
  EXPECT_EQ(named_, 7u);
}

TEST_F(TwinTest, ASecondRunOfTheOwnComesFirstWhereThereIsOne) {
  start(Json::array({candidate(7, "a", with(1))}), 1);
  EXPECT_THAT(asked_, ElementsAre(100));
  end(Outcome::failed);  // whatever becomes of it
  EXPECT_THAT(asked_, ElementsAre(100, 1));
}

TEST_F(TwinTest, TheNextBestFollowsWithItsOwn) {
  start({candidate(7, "a", with(1)), candidate(8, "b", with(2))});
  end(Outcome::diverged);
  EXPECT_THAT(asked_, ElementsAre(1, 2));
  end(Outcome::completed);
  EXPECT_EQ(named_, 8u);
}

TEST_F(TwinTest, KeysThatHaveDivergedNeedNoFurtherTwin) {
  start({candidate(7, "a", with(1)), candidate(8, "a", with(1)), candidate(9, "own", nullptr)});
  end(Outcome::diverged);
  EXPECT_THAT(asked_, ElementsAre(1));
  EXPECT_EQ(named_, 9u);
}

TEST_F(TwinTest, AnOwnBatchThatDoesNotFitIsDivided) {
  start(Json::array({candidate(7, "a", with(1), with(11))}));
  end(Outcome::out_of_memory);
  EXPECT_THAT(asked_, ElementsAre(1, 11));
  end(Outcome::diverged);
  EXPECT_EQ(named_, 0u) << "your own";
}

TEST_F(TwinTest, ATwinThatFailsOtherwiseSaysNothing) {
  start({candidate(7, "a", with(1)), candidate(8, "b", with(2))});
  end(Outcome::out_of_memory);
  EXPECT_EQ(named_, 7u);
}

TEST_F(TwinTest, WithoutATrialLeftTheOwnFollowsADivergence) {
  start({candidate(7, "a", with(1)), candidate(8, "b", with(2))}, 2, 1);
  end(Outcome::diverged);
  EXPECT_THAT(asked_, ElementsAre(1));
  EXPECT_EQ(named_, 0u);
}

TEST_F(TwinTest, AtTheTrialLimitTheBestStays) {
  most_ = 0;
  start(Json::array({candidate(7, "a", with(1))}));
  EXPECT_TRUE(is_over_);
  EXPECT_EQ(named_, 7u);
}

TEST_F(TwinTest, FourDivergencesAreEnough) {
  Json candidates = Json::array();
  for (int i = 0; i < 9; ++i) candidates.push_back(candidate(static_cast<uint64_t>(i + 1), std::to_string(i), with(i)));
  start(candidates);
  while (!is_over_) end(Outcome::diverged);
  EXPECT_EQ(asked_.size(), kMostFinalists);
  EXPECT_EQ(named_, 0u);
}

TEST(TwinKeys, ATwinHasTheOwnBatch) {
  const Json own{{config::kMicroBatchKey, 12}, {config::kAccumulationKey, 3}, {config::kTrainBatchKey, 36}};
  const Json best{{config::kMicroBatchKey, 40}, {"zero_optimization", {{"stage", 2}}}};
  EXPECT_EQ(at_own_batch(best, own),
            (Json{{config::kMicroBatchKey, 12}, {"zero_optimization", {{"stage", 2}}}, {config::kAccumulationKey, 3}}));
  EXPECT_EQ(at_smaller_batch(best, own, 5)[config::kMicroBatchKey], 4);
  EXPECT_EQ(at_smaller_batch(best, own, 5)[config::kAccumulationKey], 9);
  EXPECT_EQ(at_smaller_batch(best, own, 40)[config::kMicroBatchKey], 6) << "smaller than what did not fit";
  EXPECT_TRUE(at_smaller_batch(best, {{config::kMicroBatchKey, 1}, {config::kAccumulationKey, 3}}, 1).is_null());
  Json a = best, b = best;
  a[config::kTrainBatchKey] = 1;
  b[config::kMicroBatchKey] = 1;
  EXPECT_EQ(keys_of(a), keys_of(b));
  b["zero_optimization"]["stage"] = 3;
  EXPECT_NE(keys_of(a), keys_of(b));
}

// Trials by hand: the user's own is trial 0.
class CheckTest : public ::testing::Test {
 protected:
  Trial& add(Phase phase, int stage, int64_t micro_batch, double first_loss, Outcome outcome = Outcome::completed) {
    Trial trial;
    trial.record.id = trials_.size();
    trial.phase = phase;
    trial.record.outcome = outcome;
    trial.record.config = {{config::kMicroBatchKey, micro_batch}, {"zero_optimization", {{"stage", stage}}}};
    trial.identity = trial.record.config.dump();
    if (first_loss > 0) trial.record.curve.losses = {first_loss, first_loss / 2};
    trials_.push_back(trial);
    return trials_.back();
  }
  TwinCheck check(uint64_t best, bool is_wanted = true) {
    return *check_of_best(trials_, trials_.front().identity, best, is_wanted, false);
  }
  std::vector<Trial> trials_;
};

TEST_F(CheckTest, ATwinThatAgreesIsNamedWithItsDistance) {
  add(Phase::baseline, 1, 4, 3);
  add(Phase::searcher, 2, 16, 2);
  add(Phase::twin, 1, 4, 3);
  add(Phase::twin, 2, 4, 3.001);
  EXPECT_EQ(check(1).state, TwinCheck::State::agrees);
  EXPECT_EQ(check(1).twin, 3u);
  EXPECT_THAT(check(1).text, HasSubstr("2 values, 0.033 % apart"));
  EXPECT_EQ(check(0).state, TwinCheck::State::own);
  EXPECT_EQ(check(1, false).state, TwinCheck::State::unchecked);
}

TEST_F(CheckTest, WhyNothingWasChecked) {
  add(Phase::baseline, 1, 4, 0);
  add(Phase::searcher, 2, 16, 0);
  EXPECT_THAT(check(1).text, HasSubstr("--loss-pattern"));
  trials_[1].record.curve.losses = {1.0};
  EXPECT_THAT(check(1).text, HasSubstr("your own configuration was not measured"));
  trials_[0].record.curve.losses = {1.0};
  EXPECT_THAT(check(1).text, HasSubstr("no trial was left"));
  add(Phase::twin, 2, 4, 0);
  EXPECT_THAT(check(1).text, HasSubstr("reports neither"));
  trials_[2].record.outcome = Outcome::out_of_memory;
  EXPECT_THAT(check(1).text, HasSubstr("trial 2: out_of_memory"));
}

TEST_F(CheckTest, AnOwnThatGivesNoNumberOrRandomOnesIsNoReference) {
  add(Phase::baseline, 1, 4, 3);
  add(Phase::searcher, 2, 16, 2);
  trials_[0].record.curve = {{std::nan(""), std::nan("")}, {}};
  EXPECT_FALSE(can_be_compared({&trials_[0]}));
  EXPECT_THAT(check(1).text, HasSubstr("no gradient norm of your own configuration is a number"));
  trials_[0].record.curve = {{3.0, std::nan("")}, {}};
  EXPECT_TRUE(can_be_compared({&trials_[0]}));
  add(Phase::twin, 1, 4, 9);
  EXPECT_FALSE(can_be_compared({&trials_[0], &trials_[2]}));
  EXPECT_THAT(check(1).text, HasSubstr("which is random"));
}

TEST_F(CheckTest, ASimulationThatGivesNoLossesIsNotChecked) {
  add(Phase::baseline, 1, 4, 0);
  add(Phase::searcher, 2, 16, 0);
  EXPECT_FALSE(check_of_best(trials_, trials_.front().identity, 1, true, true));
  EXPECT_FALSE(check_of_best(trials_, trials_.front().identity, std::nullopt, true, false));
}

TEST_F(CheckTest, ABatchAloneNeedsNoTwin) {
  add(Phase::baseline, 1, 4, 3);
  add(Phase::searcher, 1, 64, 2);
  EXPECT_EQ(check(1).state, TwinCheck::State::own);
}

TEST_F(CheckTest, AnotherOptimizerIsComparedInItsFirstStepAlone) {
  Trial own = add(Phase::baseline, 1, 4, 3);
  Json config = own.record.config;
  const Curve other{{3.0, 9.0}, {}};
  EXPECT_TRUE(band_for({&own, &own}, config).leaves(other));
  config["optimizer"] = {{"type", "Muon"}};
  EXPECT_FALSE(band_for({&own, &own}, config).leaves(other));
  EXPECT_TRUE(band_for({&own, &own}, config).leaves(Curve{{9.0}, {}}));
}

}  // namespace
}  // namespace dsat::host
