// What is left of a budget of time, and how much of one of device-hours is spent.
#include "study/turn/budgets.h"

#include <gtest/gtest.h>

#include "host/study/study_fixture.h"
#include "plan/device_hours.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using std::chrono::minutes;

class TimeBudgetTest : public ::testing::Test {
 protected:
  TimeBudgetTest() { budget_.begin(begin_); }
  void trial(uint64_t id, minutes from, minutes to, bool completed = true) {
    budget_.trial_started(id, begin_ + from);
    budget_.trial_ended(id, begin_ + to, completed);
  }
  // The search's end, counted from the begin.
  minutes end(int later_trials, int at_once = 1) const {
    return std::chrono::duration_cast<minutes>(*budget_.end_of_search(later_trials, at_once) - begin_);
  }

  const TimeBudget::Time begin_{};
  TimeBudget budget_{minutes(100)};
};

TEST_F(TimeBudgetTest, WithoutOneThereIsNoEnd) {
  TimeBudget none(std::nullopt);
  none.begin(begin_);
  EXPECT_FALSE(none.end());
  EXPECT_FALSE(none.end_of_search(4, 1));
}

TEST_F(TimeBudgetTest, TheSearchLeavesTimeForTheTrialsThatFollow) {
  EXPECT_EQ(end(4), minutes(100)) << "nothing is known of what a trial takes";
  trial(0, minutes(0), minutes(4));
  trial(1, minutes(4), minutes(10));
  EXPECT_EQ(end(4), minutes(100 - 4 * 5 * 6 / 5)) << "four of the mean length, and a fifth";
  EXPECT_EQ(end(4, 2), minutes(100 - 2 * 5 * 6 / 5)) << "side by side";
  EXPECT_EQ(end(4, 4), minutes(100 - 2 * 5 * 6 / 5)) << "one after the other at least twice";
  EXPECT_EQ(end(3, 2), minutes(100 - 2 * 5 * 6 / 5)) << "a round that is not full is one";
  EXPECT_EQ(end(0), minutes(100));
}

TEST_F(TimeBudgetTest, OnlyTrialsThatCompletedTellHowLongOneTakes) {
  trial(0, minutes(0), minutes(5));
  trial(1, minutes(5), minutes(6), false);
  budget_.trial_ended(7, begin_ + minutes(90), true);  // of an earlier host, which knew when it began
  EXPECT_EQ(end(2), minutes(100 - 2 * 5 * 6 / 5));
}

TEST_F(TimeBudgetTest, WhereMoreThanAQuarterWouldBeLeftTheSearchHasItAll) {
  trial(0, minutes(0), minutes(10));
  EXPECT_EQ(end(2), minutes(100 - 24));
  EXPECT_EQ(end(3), minutes(100));
}

TEST_F(TimeBudgetTest, WhatAnEarlierProcessOfTheRunUsedIsGone) {
  TimeBudget rest(minutes(100));
  rest.use(minutes(70));
  rest.begin(begin_);
  EXPECT_EQ(*rest.end(), begin_ + minutes(30));
  rest.use(minutes(200));
  rest.begin(begin_);
  EXPECT_EQ(*rest.end(), begin_) << "it ends at once";
}

Trial ran(const std::string& from, const std::string& to, size_t slots) {
  Trial trial;
  trial.record.started_at = "2026-01-01T" + from + ":00.000000Z";
  trial.record.ended_at = "2026-01-01T" + to + ":00.000000Z";
  trial.record.slots.assign(slots, "0");
  return trial;
}

TEST(DeviceHoursTest, ATrialSpendsItsTimeOnEachOfItsDevices) {
  EXPECT_DOUBLE_EQ(device_hours({ran("00:00", "00:30", 8), ran("00:30", "01:30", 1)}), 8 * 0.5 + 1);
}

TEST(DeviceHoursTest, WhatDidNotRunSpendsNothing) {
  Trial copy = ran("00:00", "01:00", 4), open = ran("00:00", "01:00", 4);
  copy.record.duplicate_of = 0;
  open.record.ended_at.clear();
  EXPECT_EQ(device_hours({copy, open, ran("01:00", "00:00", 1)}), 0) << "a clock that was set back neither";
}

TEST(DeviceHoursTest, ASlotOfASimulationIsARangeOfDevices) {
  Trial trial = ran("00:00", "01:00", 2);
  trial.record.slots = {"0-63", "64-127"};
  EXPECT_DOUBLE_EQ(device_hours({trial}), 128);
}

class DeviceBudgetTest : public StudyTest {
 protected:
  static TrialEnd in_years(TrialEnd end) {
    end.ended_at = "2100-01-01T00:00:00.000000Z";
    return end;
  }
  static double spent(const Session& session) {
    return Journal::open(session.plan.dir, Journal::Mode::read_only)->meta("spent_device_hours")->get<double>();
  }
};

TEST_F(DeviceBudgetTest, EveryRunOfATrialCountsAlsoOverAResume) {
  StudyOptions given = scripted({{"start", {try_micro_batch(2)}}});
  given.max_restarts = 1;
  Session first(plan_of(given));
  first.runner.answer = [&](const TrialSpec&) {
    first.runner.held = {0};  // in its second run
    return in_years(failed(Outcome::failed, "flaky"));
  };
  first.runner.when_all_held = [&] { first.request_stop(); };
  EXPECT_EQ(first.run_new().status, StudyStatus::interrupted);
  const double before = spent(first);
  EXPECT_GT(before, 1000);
  EXPECT_EQ(device_hours(first.trials()), 0) << "no run of the trial has been its last";
  first.coordinator.reset();
  first.close_journal();
  Session second(resumed_plan(first.plan.dir));
  second.runner.answer = [](const TrialSpec&) { return in_years(completed(100)); };
  second.resume();
  EXPECT_GT(device_hours(second.trials()), 1000);
  EXPECT_NEAR(spent(second), before + device_hours(second.trials()), 1e-6);
}

TEST_F(DeviceBudgetTest, ARunThatIsToBeRepeatedMaySpendTheBudget) {
  StudyOptions given = scripted({{"start", {try_micro_batch(2)}}});
  given.max_restarts = 5;
  given.budget = "1";
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    return in_years(failed(Outcome::failed, "flaky " + std::to_string(spec.attempt)));
  };
  EXPECT_THAT(session.run_new().reason, HasSubstr("the budget is spent"));
  EXPECT_EQ(session.runner.started.size(), 1u);
  EXPECT_EQ(session.trials()[0].record.outcome, Outcome::failed) << "what is not repeated has ended";
}

TEST_F(DeviceBudgetTest, ATrialThatStillRunsMaySpendTheBudget) {
  StudyOptions given = scripted({{"start", {try_micro_batch(2)}}});
  given.budget = "1";
  Session session(plan_of(given));
  session.runner.held = {0};
  session.runner.started_at = "2001-01-01T00:00:00.000000Z";
  session.runner.when_all_held = [&] { session.request_stop(); };
  EXPECT_THAT(session.run_new().reason, HasSubstr("the budget is spent"));
}

TEST_F(DeviceBudgetTest, AnInterruptedRunThatSpentItIsNotRunAgain) {
  StudyOptions given = scripted({{"start", {try_micro_batch(2)}}});
  given.budget = "1";
  Session first(plan_of(given));
  first.runner.held = {0};
  first.runner.when_all_held = [&] { first.request_stop(); };
  EXPECT_EQ(first.run_new().status, StudyStatus::interrupted);
  first.journal->put_meta("spent_device_hours", 2);
  first.journal->commit();
  first.coordinator.reset();
  first.close_journal();
  Session second(resumed_plan(first.plan.dir));
  EXPECT_THAT(second.resume().reason, HasSubstr("the budget is spent"));
  EXPECT_TRUE(second.runner.started.empty());
}

TEST(DeviceHoursTest, AreWrittenWithOrWithoutTheirUnit) {
  EXPECT_EQ(parse_device_hours("40gpuh"), 40);
  EXPECT_EQ(parse_device_hours("0.5 gpuh"), 0.5);
  EXPECT_EQ(parse_device_hours("3"), 3);
  for (const char* bad : {"", "0", "-1", "4h", "1e9", "gpuh"}) {
    EXPECT_NE(error_of([&] { parse_device_hours(bad); }).find("device-hours are needed"), std::string::npos) << bad;
  }
}

}  // namespace
}  // namespace dsat::host
