// Which slots a study has, which of them a trial takes, and the line for the rest.
#include <gmock/gmock.h>

#include "host/runner/support.h"
#include "slots/slots.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Slot> slots_of(const std::string& host, int count) {
  std::vector<Slot> slots;
  for (int i = 0; i < count; ++i) slots.push_back({std::to_string(i), i, {}, host});
  return slots;
}

std::vector<Slot> uneven() {
  std::vector<Slot> slots = slots_of("big", 4);
  for (const Slot& slot : slots_of("small", 2)) slots.push_back(slot);
  return slots;
}

std::string taken(SlotPool& pool, const TrialShape& shape) {
  const auto slots = pool.take(shape);
  return slots ? slot_list(*slots) : "none";
}

TEST(SlotPool, HandsOutEachSlotOnceAndKeepsToItsLimit) {
  SlotPool pool(slots_of("", 4), 3);
  EXPECT_EQ(pool.free(), 3);
  const auto first = pool.take({{2}});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(slot_list(*first), "0,1");
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(taken(pool, {{2}}), "none") << "3 slots are the limit";
  EXPECT_EQ(taken(pool, {{1}}), "2");
  pool.give_back(*first);
  EXPECT_EQ(pool.free(), 2);
  pool.give_back(*first);  // twice is once
  EXPECT_EQ(pool.free(), 2);
}

TEST(SlotPool, KeepsATrialOfOneNodeOnOneHostAndFillsTheFullestFirst) {
  SlotPool pool(uneven(), {});
  EXPECT_EQ(taken(pool, {{2}}), "small:0,1");
  EXPECT_EQ(taken(pool, {{3}}), "big:0,1,2");
  EXPECT_EQ(taken(pool, {{2}}), "none") << "one slot is left";
  EXPECT_EQ(taken(pool, {{1}}), "big:3");
}

TEST(SlotPool, TheNodesOfATrialAreDifferentHosts) {
  SlotPool pool(uneven(), {});
  EXPECT_EQ(taken(pool, TrialShape::even(3, 1)), "none");
  EXPECT_EQ(taken(pool, TrialShape::even(2, 3)), "none");
  EXPECT_EQ(taken(pool, {{2, 4}}), "big:0,1,2,3 small:0,1");
}

TEST(SlotPool, WithheldSlotsWaitUntilTheyAreRestored) {
  SlotPool pool(uneven(), {});
  const std::vector<Slot> small = slots_of("small", 2);
  ASSERT_TRUE(pool.withhold(small, {{{2}}}));
  EXPECT_EQ(pool.free(), 4);
  pool.give_back(small);  // nobody had them
  EXPECT_EQ(taken(pool, {{2}}), "big:0,1");
  EXPECT_TRUE(pool.withhold(small, {{{2}}})) << "they are withheld already";
  EXPECT_EQ(pool.free(), 2);
  pool.restore(small);
  pool.restore(small);  // twice is once
  EXPECT_EQ(pool.free(), 4);
  EXPECT_EQ(taken(pool, {{2}}), "big:2,3");
  EXPECT_EQ(taken(pool, {{2}}), "small:0,1");
  EXPECT_FALSE(pool.withhold(small, {{{2}}})) << "a trial has them";
}

TEST(SlotPool, WithholdsNothingThatAShapeCannotDoWithout) {
  SlotPool pool(uneven(), {});
  const std::vector<Slot> big = slots_of("big", 4);
  EXPECT_FALSE(pool.withhold(big, {{{1}}, {{4}}}));
  EXPECT_FALSE(pool.withhold({big[3]}, {{{4}}}));
  EXPECT_EQ(pool.free(), 6);
  EXPECT_TRUE(pool.withhold({big[3]}, {{{3}}, {{5}}})) << "five have no room with it either";
  EXPECT_EQ(taken(pool, {{3}}), "big:0,1,2");
  EXPECT_TRUE(pool.withhold(slots_of("small", 1), {{{3}}})) << "trials that run give their slots back";
  EXPECT_EQ(pool.free(), 1);
}

TEST(SlotPool, WhatIsWithheldComesBackOnceAShapeHasNoOtherPlace) {
  SlotPool pool(uneven(), {});
  ASSERT_TRUE(pool.withhold(slots_of("small", 2), {{{1}}, {{2}}}));
  ASSERT_EQ(taken(pool, {{2}}), "big:0,1");
  pool.hold({slots_of("big", 2)});
  EXPECT_EQ(pool.free(), 2) << "big:2,3";
  ASSERT_EQ(taken(pool, {{2}}), "big:2,3");
  EXPECT_EQ(pool.free(), 0);
  pool.hold({slots_of("big", 4)[2]});
  EXPECT_EQ(pool.free(), 2) << "trials of two slots have no other place than small:0,1";
  EXPECT_EQ(taken(pool, {{2}}), "small:0,1");
  pool.give_back(slots_of("big", 2));
  EXPECT_EQ(taken(pool, {{2}}), "big:0,1") << "the processes are gone after all";
}

// While a slot is held, four have no place, and one more may be withheld. Then the processes are gone after all.
TEST(SlotPool, WhatIsWithheldComesBackWhenAHeldSlotMakesAPlaceAgain) {
  SlotPool pool(uneven(), {});
  const std::vector<Slot> big = slots_of("big", 4);
  ASSERT_EQ(taken(pool, {{4}}), "big:0,1,2,3");
  pool.give_back({big[0], big[1], big[2]});
  pool.hold({big[3]});
  ASSERT_TRUE(pool.withhold({big[0]}, {{{1}}, {{4}}}));
  pool.give_back({big[3]});
  EXPECT_EQ(taken(pool, {{4}}), "big:0,1,2,3");
}

TEST(SlotPool, AHostThatIsGoneRestoresWhatIsNeeded) {
  SlotPool pool(uneven(), {});
  ASSERT_TRUE(pool.withhold(slots_of("small", 1), {{{1}}, {{2}}}));
  pool.retire("big");
  EXPECT_EQ(taken(pool, {{2}}), "small:0,1");

  SlotPool other(uneven(), {});
  ASSERT_TRUE(other.withhold(slots_of("small", 1), {{{1}}}));
  ASSERT_TRUE(other.withhold({slots_of("big", 4)[0]}, {{{1}}}));
  other.retire("big");
  EXPECT_EQ(taken(other, {{1}}), "small:1");
  EXPECT_EQ(other.free(), 0) << "small:0 is still withheld";
}

TEST(SlotPool, TheSlotsOfAHostThatIsGoneAreNoLongerInUse) {
  SlotPool pool(uneven(), {});
  ASSERT_EQ(taken(pool, {{3}}), "big:0,1,2");
  ASSERT_EQ(taken(pool, {{1}}), "big:3");
  ASSERT_EQ(taken(pool, {{1}}), "small:0");
  pool.retire("big");
  EXPECT_EQ(pool.free(), 1);
  pool.give_back(slots_of("big", 3));
  EXPECT_EQ(pool.free(), 1) << "the trial has ended, the host stays away";
  pool.give_back(slots_of("small", 1));
  EXPECT_EQ(taken(pool, {{2}}), "small:0,1");
}

class Placement : public TempDirTest {
 protected:
  Placement() {
    write_text(dir() / "hosts", "w1 slots=4\nw2 slots=2\nw3 slots=3\n");
    request_.hostfile = dir() / "hosts";
  }
  SlotPlan plan() { return plan_slots(devices_, request_); }
  std::string error() {
    return error_of([&] { plan(); });
  }
  Devices devices_;
  SlotRequest request_{};
};

TEST_F(Placement, ByDefaultATrialTakesEverySlotOfEveryHost) {
  const SlotPlan all = plan();
  EXPECT_EQ(all.slots_per_trial, 9);
  EXPECT_THAT(all.shape.node_slots, ElementsAre(4, 2, 3));
  EXPECT_EQ(all.at_once, 1);
  EXPECT_THAT(all.notices, IsEmpty());
}

TEST_F(Placement, SmallTrialsArePackedSideBySideAndWhatStaysIdleIsReported) {
  request_.num_gpus = {2};
  request_.num_nodes = {1};
  const SlotPlan packed = plan();
  EXPECT_EQ(packed.at_once, 4);
  EXPECT_THAT(packed.placements, Contains(AllOf(HasSubstr("takes 2 slots"), HasSubstr("up to 4 "),
                                                HasSubstr("w2:0,1 | w3:0,1 | w1:0,1 | w1:2,3"))));
  EXPECT_THAT(packed.notices, ElementsAre(HasSubstr("w3:2 stays idle")));
}

TEST_F(Placement, NumGpusCountsThoseOfEachNodeAndAllNodesWithoutNumNodes) {
  request_.num_gpus = {2};
  EXPECT_THAT(plan().shape.node_slots, ElementsAre(2, 2, 2));
  EXPECT_THAT(plan().notices, ElementsAre(HasSubstr("w1:2,3 w3:2 stay idle")));
  request_.num_gpus = {3};
  EXPECT_THAT(error(),
              AllOf(HasSubstr("num_gpus 3 "), HasSubstr("num_nodes 3"), HasSubstr("4 on w1, 2 on w2, 3 on w3")));
  request_.num_gpus = {};
  request_.num_nodes = {2};
  EXPECT_THAT(plan().shape.node_slots, ElementsAre(4, 2)) << "the first two, whole";
  request_.num_nodes = {4};
  EXPECT_THAT(error(), HasSubstr("num_nodes is 4"));
}

TEST_F(Placement, ATotalGoesToAsFewNodesAsShareItEvenly) {
  request_.slots_per_trial = 4;
  EXPECT_THAT(plan().shape.node_slots, ElementsAre(4));
  request_.slots_per_trial = 6;
  EXPECT_THAT(plan().shape.node_slots, ElementsAre(3, 3));
  request_.slots_per_trial = 7;
  EXPECT_THAT(error(), HasSubstr("--slots-per-trial is 7"));
}

TEST_F(Placement, FiltersHostsAndSlots) {
  request_.include = "w3@w1:0,2";
  EXPECT_EQ(slot_list(plan().slots), "w1:0,2 w3:0,1,2") << "in the order of the hostfile";
  request_.include = "";
  request_.exclude = "w1@w3:1";
  EXPECT_EQ(slot_list(plan().slots), "w2:0,1 w3:0,2");
}

TEST_F(Placement, RefusesFiltersThatNameWhatIsNotThere) {
  request_.include = "w9";
  EXPECT_THAT(error(), AllOf(HasSubstr("--include"), HasSubstr("host 'w9'"), HasSubstr("w1 (4 slots), w2 (2 slots)")));
  request_.include = "w2:0,2";
  EXPECT_THAT(error(), AllOf(HasSubstr("--include"), HasSubstr("slot '2' of w2")));
  request_.exclude = "w1";
  EXPECT_THAT(error(), HasSubstr("--include and --exclude"));
  request_.include = "";
  request_.exclude = "w1@w2@w3";
  EXPECT_THAT(error(), HasSubstr("leaves no slot"));
}

TEST_F(Placement, AHostfileAndANumberOfSlotsAreTwoAnswers) {
  request_.slots = 4;
  EXPECT_THAT(error(), HasSubstr("keep one"));
}

TEST_F(Placement, WhatIsLeftOnThisMachineNeedsNoHostfile) {
  write_text(dir() / "hosts", "localhost slots=2\nw2 slots=2\n");
  EXPECT_FALSE(plan().hostfile.empty());
  request_.exclude = "w2";
  const SlotPlan here = plan();
  EXPECT_TRUE(here.hostfile.empty());
  EXPECT_EQ(slot_list(here.slots), "0,1");
  write_text(dir() / "hosts", "localhost slots=2\n127.0.0.1 slots=2\n");
  request_.exclude = "";
  EXPECT_THAT(error(), HasSubstr(":2: 127.0.0.1 is"));
}

TEST_F(Placement, OfThisMachineOnlyVisibleDevicesCount) {
  write_text(dir() / "hosts", "localhost slots=3\n");
  devices_.backend = Backend::cuda;
  devices_.slots = {{"GPU-b", 1, 8000, ""}, {"GPU-a", 0, 4000, ""}};
  EXPECT_THAT(error(), AllOf(HasSubstr(":1: localhost has slots=3"), HasSubstr("device 2 ")));
  write_text(dir() / "hosts", "localhost slots=2\n");
  EXPECT_EQ(slot_list(plan().slots), "GPU-a,GPU-b");
  EXPECT_EQ(plan().device_memory_bytes, 4000u);
}

TEST_F(Placement, AnIncludeOfThisMachineIsItsPool) {
  request_.hostfile.clear();
  request_.include = "localhost:1,3";
  EXPECT_THAT(error(), AllOf(HasSubstr("slot '1' of localhost"), HasSubstr("localhost (1 slot)")));
  EXPECT_THAT(error(), HasSubstr("--slots N"));
  request_.slots = 4;
  EXPECT_EQ(slot_list(plan().slots), "1,3");
  EXPECT_EQ(plan().slots_per_trial, 2);
  request_.slots.reset();
  devices_.backend = Backend::cuda;
  devices_.slots = {{"GPU-a", 0, {}, ""}, {"GPU-b", 1, {}, ""}, {"GPU-c", 2, {}, ""}};
  EXPECT_THAT(error(), HasSubstr("slot '3' of localhost"));
  request_.include = "localhost:GPU-c,0";
  EXPECT_EQ(slot_list(plan().slots), "GPU-a,GPU-c");
}

TEST_F(Placement, ListsOfSizesAreTuned) {
  request_.section_gpus = {2, 4, 8};
  request_.section_nodes = {1, 2};
  const SlotPlan tuned = plan();
  EXPECT_THAT(tuned.num_gpus, ElementsAre(2, 4));
  EXPECT_THAT(tuned.num_nodes, ElementsAre(1, 2));
  EXPECT_EQ(tuned.shape, TrialShape::even(1, 2)) << "the first size is where the study starts";
  EXPECT_EQ(tuned.at_once, 4);
  EXPECT_THAT(tuned.notices, Contains(HasSubstr("num_gpus 8 ")));
  request_.section_gpus = {8};
  EXPECT_THAT(error(), AllOf(HasSubstr("num_gpus 8 "), HasSubstr("num_nodes 1")));
}

TEST_F(Placement, BesideSizesInTheSectionTheCommandLineLimitsWhatThereIs) {
  request_.section_gpus = {1, 2};
  request_.num_gpus = {2};
  request_.num_nodes = {2};
  EXPECT_EQ(slot_list(plan().slots), "w1:0,1 w2:0,1");
}

TEST_F(Placement, RefusesNumbersThatMeanNothing) {
  request_.num_gpus = {0};
  EXPECT_THAT(error(), HasSubstr("num_gpus is 0"));
  request_.num_gpus = {2};
  request_.slots_per_trial = 2;
  EXPECT_THAT(error(), HasSubstr("keep one"));
}

}  // namespace
}  // namespace dsat::host
