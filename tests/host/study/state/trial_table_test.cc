// One state for each trial, and the queues that follow from it. The table gets trials without configurations, and time
// is a number.
#include "study/state/trial_table.h"

#include "host/study/study_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const TrialTable::Time kStart{};

class TrialTableTest : public ::testing::Test {
 protected:
  uint64_t add(const std::string& identity, std::optional<uint64_t> duplicate_of = {}) {
    Trial trial;
    trial.record.id = table_.size();
    trial.record.duplicate_of = duplicate_of;
    trial.identity = identity;
    return table_.add(std::move(trial), now_).id();
  }
  uint64_t add_refused() {
    Trial trial;
    trial.record.id = table_.size();
    trial.record.outcome = Outcome::invalid_config;
    return table_.add(std::move(trial), now_).id();
  }
  void end(uint64_t id, Outcome outcome = Outcome::completed) {
    TrialEnd end;
    end.id = id;
    end.outcome = outcome;
    end.metrics = {{"throughput", 7}};
    table_.end(std::move(end), now_);
  }
  void run(uint64_t id, Outcome outcome = Outcome::completed) {
    table_.start(id);
    end(id, outcome);
  }
  std::optional<uint64_t> next() const { return table_.next_to_deliver(now_).id; }

  TrialTable table_;
  TrialTable::Time now_ = kStart;
};

TEST(TrialStateTest, TheChangesThatAreAllowedAreTheseAndNoOthers) {
  using S = TrialState;
  const std::set<std::pair<S, S>> allowed{
      {S::waiting, S::running}, {S::waiting, S::ended},  {S::running, S::stopping}, {S::running, S::ended},
      {S::running, S::waiting}, {S::stopping, S::ended}, {S::stopping, S::waiting}, {S::ended, S::delivered}};
  const auto all = {S::waiting, S::running, S::stopping, S::ended, S::delivered};
  for (const S from : all) {
    for (const S to : all) EXPECT_EQ(may_follow(from, to), allowed.count({from, to}) != 0);
  }
}

TEST_F(TrialTableTest, ATrialGoesFromQueueToQueue) {
  const uint64_t id = add("a");
  EXPECT_THAT(table_.waiting(), ElementsAre(id));
  table_.start(id);
  EXPECT_THAT(table_.waiting(), IsEmpty());
  EXPECT_THAT(table_.running(), ElementsAre(id));
  EXPECT_EQ(table_[id].record.attempt, 1u);
  end(id);
  EXPECT_THAT(table_.running(), IsEmpty());
  EXPECT_EQ(next(), id);
  EXPECT_TRUE(table_.any_open());
  table_.deliver(id);
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_FALSE(table_.any_open());
}

TEST_F(TrialTableTest, AnyOtherChangeThrowsAndChangesNothing) {
  const uint64_t id = add("a");
  EXPECT_THAT(error_of([&] { table_.deliver(id); }, DSAT_INTERNAL),
              AllOf(StartsWith("trial 0 "), HasSubstr("waiting to delivered")));
  EXPECT_THAT(error_of([&] { table_.run_again(id); }, DSAT_INTERNAL),
              AllOf(StartsWith("trial 0 "), HasSubstr("waiting to waiting")));
  EXPECT_THAT(error_of([&] { table_.start(7); }, DSAT_INTERNAL), HasSubstr("no trial 7"));
  EXPECT_THAT(table_.waiting(), ElementsAre(id));
}

TEST_F(TrialTableTest, EndedTrialsAreDeliveredInTheOrderOfIdsWithinTheWindow) {
  for (const char* identity : {"a", "b", "c"}) add(identity);
  table_.start(0);
  run(1);
  EXPECT_EQ(next(), std::nullopt) << "an older one runs";
  EXPECT_EQ(table_.next_to_deliver(now_).not_before, now_ + kReorderWindow);
  now_ += kReorderWindow;
  EXPECT_EQ(next(), 1u);
  end(0);
  EXPECT_EQ(next(), 0u);
}

TEST_F(TrialTableTest, WhatCostNoRunIsDeliveredFirst) {
  add("a");
  run(0);
  EXPECT_EQ(add_refused(), 1u);
  EXPECT_EQ(next(), 1u);
}

TEST_F(TrialTableTest, DuplicatesWaitForTheirOriginalAndEndAsItDid) {
  add("a");
  add("a", 0);
  EXPECT_THAT(table_.waiting(), ElementsAre(0)) << "a duplicate needs no room";
  run(0);
  table_.deliver(0);
  EXPECT_THAT(table_.answer_duplicates(0, "then", now_), ElementsAre(1));
  EXPECT_EQ(table_[1].record.outcome, Outcome::completed);
  EXPECT_EQ(table_[1].record.metrics, table_[0].record.metrics);
  EXPECT_EQ(next(), 1u);
  EXPECT_THAT(table_.answer_duplicates(0, "then", now_), IsEmpty());
}

TEST_F(TrialTableTest, AStoppedTrialLetsAnotherOfItsConfigurationAnswer) {
  add("a");
  add("a");  // a repeat
  EXPECT_EQ(table_.answering("a"), 0u);
  EXPECT_EQ(table_.runs_of("a"), 2u);
  EXPECT_EQ(table_[1].earlier_runs, 1u);
  run(0, Outcome::stopped);
  EXPECT_EQ(table_.answering("a"), 1u);
  run(1, Outcome::lost);
  EXPECT_EQ(table_.answering("a"), std::nullopt);
}

TEST_F(TrialTableTest, AStartThatIsTakenBackChangesNothingInTheJournal) {
  add("a");
  table_.start(0);
  table_.take_back_start(0);
  EXPECT_THAT(table_.take_changed(), ElementsAre(0)) << "the journal does not have it yet";
  table_.start(0);
  table_.take_changed();
  table_.take_back_start(0);
  EXPECT_THAT(table_.take_changed(), IsEmpty());
}

TEST_F(TrialTableTest, OnlyWhatCostsARunCountsAndAStopBeforeItGivesItBack) {
  add("a");
  add("a", 0);
  add_refused();
  add("b");
  EXPECT_EQ(table_.counted(), 2);
  EXPECT_EQ(table_.fruitless(), 0);
  end(3, Outcome::stopped);
  EXPECT_EQ(table_.counted(), 1);
  run(0, Outcome::stopped);
  EXPECT_EQ(table_.counted(), 1) << "it ran";
  add("b", 3);
  add_refused();
  EXPECT_EQ(table_.fruitless(), 2);
}

TEST_F(TrialTableTest, StopsOfWaitingTrialsAreTakenAtOnceAndThoseOfRunningOnesLater) {
  for (const char* identity : {"a", "b", "c"}) add(identity);
  add("b", 1);
  table_.start(0);
  for (const uint64_t id : {0, 1, 3}) table_.request_stop(id);
  EXPECT_THAT(table_.take_stops_of_waiting(), ElementsAre(1, 3));
  EXPECT_THAT(table_.take_stops_of_running(), ElementsAre(0));
  EXPECT_EQ(table_[0].state, TrialState::stopping);
  EXPECT_THAT(table_.take_stops_of_running(), IsEmpty());
  table_.request_stop_of_running();
  EXPECT_THAT(table_.take_stops_of_running(), ElementsAre(0)) << "asked once more";
  table_.run_again(0);
  EXPECT_THAT(table_.waiting(), ElementsAre(0, 1, 2));
}

TEST_F(TrialTableTest, SaysWhatHasChanged) {
  add("a");
  add("b");
  EXPECT_THAT(table_.take_changed(), ElementsAre(0, 1));
  table_.start(1);
  EXPECT_THAT(table_.take_changed(), ElementsAre(1));
  table_.request_stop(1);
  table_.take_stops_of_running();
  EXPECT_THAT(table_.take_changed(), IsEmpty()) << "to the journal it still runs";
  table_.take_back_start(1);
  EXPECT_THAT(table_.take_changed(), IsEmpty()) << "the journal keeps what it has";
}

TEST_F(TrialTableTest, TakesUpAJournalsTrials) {
  add("a");
  add("b");
  add("c");
  add("a", 0);
  run(0);
  table_.start(1);
  end(2, Outcome::stopped);
  const TrialTable again(table_.all(), now_);
  EXPECT_THAT(again.running(), ElementsAre(1));
  EXPECT_EQ(again.next_to_deliver(now_).id, 0u);
  EXPECT_EQ(again.counted(), 2);
  EXPECT_EQ(again.answering("a"), 0u);
  EXPECT_EQ(again.answering("c"), std::nullopt);
}

}  // namespace
}  // namespace dsat::host
