// Studies of one machine that use the same devices.
#include "slots/slot_claim.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

namespace dsat::host {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Devices that no other test and no study on this machine has.
const int kFirst = 1000000 + static_cast<int>(getpid()) * 8;

std::vector<Slot> slots(const std::vector<int>& numbers) {
  std::vector<Slot> result;
  for (const int number : numbers) result.push_back({std::to_string(kFirst + number), kFirst + number, {}});
  return result;
}

std::string notice(const SlotClaim& claim) { return claim.notice_of_others().value_or(""); }

TEST(SlotClaim, NamesTheDevicesOfAnotherStudyAndItsProcess) {
  const SlotClaim first(Backend::cuda, slots({0, 1, 2}));
  EXPECT_EQ(notice(first), "") << "its own are nobody else's";
  auto second = std::make_unique<SlotClaim>(Backend::cuda, slots({2, 1, 3}));
  EXPECT_THAT(notice(*second), HasSubstr("devices " + slots({1})[0].id + ", " + slots({2})[0].id + " too (process " +
                                         std::to_string(getpid()) + ")"));
  EXPECT_THAT(notice(first), Not(HasSubstr(slots({3})[0].id)));
  EXPECT_NE(notice(first), "") << "whoever looks sees the other";
  second.reset();
  EXPECT_EQ(notice(first), "");
}

TEST(SlotClaim, ADeviceIsTheSameByIndexAndByUuid) {
  const SlotClaim first(Backend::cuda, slots({0}));
  const SlotClaim second(Backend::cuda, {{"GPU-7f1c/MIG", kFirst, {}}});
  EXPECT_THAT(notice(second), HasSubstr("device GPU-7f1c/MIG too")) << "of neither is the UUID known";
  const std::string uuid = "GPU-" + std::to_string(kFirst);
  const SlotClaim third(Backend::cuda, {{"0", 0, {}, {}, 0, uuid}});
  EXPECT_THAT(notice(SlotClaim(Backend::cuda, {{uuid, 3, {}, {}, 0, uuid}})), HasSubstr("device " + uuid + " too"));
  EXPECT_EQ(notice(SlotClaim(Backend::cuda, {{"0", 0, {}, {}, 0, uuid + "b"}})), "") << "another container's first";
}

TEST(SlotClaim, HipAndRocrSeeTheSameDevices) {
  const SlotClaim first(Backend::hip, slots({5}));
  EXPECT_NE(notice(SlotClaim(Backend::rocr, slots({5}))), "");
}

TEST(SlotClaim, ThisMachineIsThisMachineInAHostfileToo) {
  std::vector<Slot> listed = slots({6});
  listed[0].host = "localhost";
  const SlotClaim first(Backend::cuda, listed);
  EXPECT_NE(notice(SlotClaim(Backend::cuda, slots({6}))), "");
}

TEST(SlotClaim, OtherBackendsHostsAndProcessorsAreNotShared) {
  const SlotClaim first(Backend::cuda, slots({0}));
  EXPECT_EQ(notice(SlotClaim(Backend::hip, slots({0}))), "");
  EXPECT_EQ(notice(SlotClaim(Backend::none, slots({0}))), "");
  std::vector<Slot> elsewhere = slots({0});
  elsewhere[0].host = "worker-1";
  EXPECT_EQ(notice(SlotClaim(Backend::cuda, elsewhere)), "");
}

TEST(SlotClaim, EndsWithItsProcessHoweverThatEnds) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const SlotClaim claim(Backend::cuda, slots({4}));
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const SlotClaim own(Backend::cuda, slots({4}));
  EXPECT_THAT(notice(own), HasSubstr("process " + std::to_string(child) + ")"));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(notice(own), "");
  close(ready[0]);
  close(ready[1]);
}

TEST(SlotClaim, ANameThatIsTooLongForASocketIsNotClaimed) {
  const SlotClaim too_long(Backend::cuda, {{std::string(200, 'x'), std::nullopt, {}}});
  EXPECT_EQ(notice(too_long), "");
}

}  // namespace
}  // namespace dsat::host
