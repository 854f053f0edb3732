// Slots on which trials fail that complete on others.
#include "runner/slot_watch.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Slot> slots(const std::vector<int>& ordinals) {
  std::vector<Slot> result;
  for (const int ordinal : ordinals) result.push_back({std::to_string(ordinal), ordinal, {}});
  return result;
}

TrialEnd end(uint64_t id, Outcome outcome) {
  TrialEnd result;
  result.id = id;
  result.outcome = outcome;
  if (outcome == Outcome::failed) result.reason = "ECC error";
  return result;
}

// A trial fails on some slots, and runs again on others while those wait.
SlotWatch::Finding run_twice(SlotWatch& watch, uint64_t id, const std::vector<Slot>& first,
                             const std::vector<Slot>& second, Outcome outcome) {
  EXPECT_THAT(watch.add(end(id, Outcome::failed), first).restored, IsEmpty());
  EXPECT_EQ(slot_list(watch.failed_on(id)), slot_list(first));
  watch.await_rerun(id);
  return watch.add(end(id, outcome), second);
}

TEST(SlotWatch, ThreeTrialsThatCompleteElsewhereShowThatASlotIsBroken) {
  SlotWatch watch;
  for (const uint64_t id : {5, 9}) {
    const SlotWatch::Finding finding = run_twice(watch, id, slots({3}), slots({0}), Outcome::completed);
    EXPECT_EQ(slot_list(finding.restored), "3") << "it may have been an accident";
    EXPECT_EQ(finding.notice, "");
    EXPECT_THAT(watch.failed_on(id), IsEmpty());
  }
  const SlotWatch::Finding third = run_twice(watch, 11, slots({3}), slots({1}), Outcome::completed);
  EXPECT_THAT(third.restored, IsEmpty());
  EXPECT_EQ(slot_list(third.broken), "3");
  EXPECT_THAT(third.notice, AllOf(HasSubstr("slot 3 "), HasSubstr("trials 5, 9, 11 "), HasSubstr("(ECC error)"),
                                  HasSubstr("--exclude localhost:3")));
}

TEST(SlotWatch, ASlotOnWhichATrialCompletesIsCleared) {
  SlotWatch watch;
  for (const uint64_t id : {1, 2, 3, 4, 5, 6}) {
    const SlotWatch::Finding finding = run_twice(watch, id, slots({3}), slots({0}), Outcome::completed);
    EXPECT_EQ(slot_list(finding.restored), "3");
    if (id % 2 == 0) watch.add(end(100 + id, Outcome::completed), slots({2, 3}));
  }
}

TEST(SlotWatch, ATrialThatDoesNotCompleteElsewhereProvesNothing) {
  SlotWatch watch;
  for (const Outcome outcome : {Outcome::failed, Outcome::out_of_memory, Outcome::stopped, Outcome::timed_out}) {
    for (const uint64_t id : {1, 2, 3, 4}) {
      const SlotWatch::Finding finding = run_twice(watch, id, slots({3}), slots({0}), outcome);
      EXPECT_EQ(slot_list(finding.restored), "3") << to_string(outcome);
      EXPECT_EQ(finding.notice, "");
    }
  }
}

TEST(SlotWatch, WhatProvesNothingTakesNoSuspicionAway) {
  SlotWatch watch;
  for (const uint64_t id : {1, 2}) run_twice(watch, id, slots({3}), slots({0}), Outcome::completed);
  EXPECT_EQ(run_twice(watch, 3, slots({3}), slots({0}), Outcome::failed).notice, "");
  EXPECT_THAT(run_twice(watch, 4, slots({3}), slots({0}), Outcome::completed).notice, HasSubstr("trials 1, 2, 4 "));
}

// A port that somebody else took says nothing of the device.
TEST(SlotWatch, AFailureOfTheInfrastructureIsNoFailureOfTheSlot) {
  SlotWatch watch;
  TrialEnd taken = end(1, Outcome::failed);
  taken.infrastructure = true;
  watch.add(taken, slots({3}));
  EXPECT_THAT(watch.failed_on(1), IsEmpty());
}

TEST(SlotWatch, OfATrialsSlotsOnlyThoseOfThreeFailuresAreBroken) {
  SlotWatch watch;
  run_twice(watch, 1, slots({2, 3}), slots({0, 1}), Outcome::completed);
  run_twice(watch, 2, slots({2, 3}), slots({0, 1}), Outcome::completed);
  const SlotWatch::Finding finding = run_twice(watch, 3, slots({3, 4}), slots({0, 1}), Outcome::completed);
  EXPECT_EQ(slot_list(finding.restored), "4");
  EXPECT_THAT(finding.notice, AllOf(HasSubstr("slot 3 "), HasSubstr("trials 1, 2, 3 ")));
}

// What waits comes back where a trial has no other place: then the trial may run there once more, and complete.
TEST(SlotWatch, ATrialThatCompletesWhereItFailedProvesNothing) {
  SlotWatch watch;
  for (const uint64_t id : {1, 2, 3, 4}) {
    const SlotWatch::Finding finding = run_twice(watch, id, slots({2, 3}), slots({1, 3}), Outcome::completed);
    EXPECT_EQ(slot_list(finding.broken), id < 3 ? "" : "2");
  }
}

TEST(SlotWatch, SlotsThatDidNotWaitProveNothing) {
  SlotWatch watch;
  for (const uint64_t id : {1, 2, 3, 4}) {
    watch.add(end(id, Outcome::failed), slots({3}));  // it runs again on the same slot, or not at all
    const SlotWatch::Finding finding = watch.add(end(id, Outcome::completed), slots({3}));
    EXPECT_THAT(finding.restored, IsEmpty());
    EXPECT_EQ(finding.notice, "");
  }
}

}  // namespace
}  // namespace dsat::host
