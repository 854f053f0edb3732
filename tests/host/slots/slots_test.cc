// Devices that stand-ins for the vendors' tools report, and what a trial takes of them.
#include "slots/slots.h"

#include <gmock/gmock.h>

#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> ids(const std::vector<Slot>& slots) {
  std::vector<std::string> result;
  for (const Slot& slot : slots) result.push_back(slot.id);
  return result;
}

// A PATH with nothing but the tools that a test puts there.
class DiscoverDevices : public TempDirTest {
 protected:
  void nvidia(const std::string& output) { write_program(dir() / "nvidia-smi", "#!/bin/sh\necho '" + output + "'\n"); }
  void rocm(const std::string& output) { write_program(dir() / "rocm-smi", "#!/bin/sh\necho '" + output + "'\n"); }
  Devices discover(Environment environment = {}) {
    set_variable(environment, "PATH", dir().string());
    return discover_devices(environment);
  }
  const std::string two_ = "0, GPU-aaaa-1, 81559, 3\n1, GPU-bbbb-2, 40536, 30000";
};

TEST_F(DiscoverDevices, FindsNothingWithoutTools) {
  EXPECT_EQ(discover().backend, Backend::none);
  EXPECT_THAT(discover({"CUDA_VISIBLE_DEVICES=0"}).slots, IsEmpty());
}

TEST_F(DiscoverDevices, ReadsIndicesAndMemoryFromNvidiaSmi) {
  nvidia(two_);
  const Devices devices = discover();
  EXPECT_EQ(devices.backend, Backend::cuda);
  EXPECT_THAT(ids(devices.slots), ElementsAre("0", "1"));
  EXPECT_EQ(devices.slots[1].memory_bytes, 40536ull << 20);
}

TEST_F(DiscoverDevices, ADeviceThatOthersUseIsNamed) {
  nvidia(two_);
  const SlotPlan both = plan_slots(discover(), {});
  ASSERT_FALSE(both.notices.empty());
  EXPECT_THAT(both.notices.back(), AllOf(HasSubstr("other programs use"), HasSubstr("31.5 GB"), HasSubstr("device 1")));
  const SlotPlan idle = plan_slots(discover({"CUDA_VISIBLE_DEVICES=0"}), {});
  for (const std::string& notice : idle.notices) EXPECT_THAT(notice, Not(HasSubstr("other programs use")));
}

TEST_F(DiscoverDevices, UnknownMemoryIsNoError) {
  nvidia("0, GPU-aaaa, [N/A], [N/A]");
  const Devices devices = discover();
  ASSERT_EQ(devices.slots.size(), 1u);
  EXPECT_EQ(devices.slots[0].memory_bytes, std::nullopt);
}

TEST_F(DiscoverDevices, HonoursTheCallersVisibleDevices) {
  nvidia(two_);
  EXPECT_THAT(ids(discover({"CUDA_VISIBLE_DEVICES=1,0"}).slots), ElementsAre("1", "0"));
  EXPECT_THAT(ids(discover({"CUDA_VISIBLE_DEVICES=1,7,0"}).slots), ElementsAre("1"));  // the driver stops at 7 too
  EXPECT_THAT(ids(discover({"CUDA_VISIBLE_DEVICES=1,0,1"}).slots), ElementsAre("1", "0")) << "a device is one slot";
  EXPECT_EQ(discover({"CUDA_VISIBLE_DEVICES="}).backend, Backend::none);
  EXPECT_EQ(discover({"CUDA_VISIBLE_DEVICES=-1"}).backend, Backend::none);
}

TEST_F(DiscoverDevices, KeepsUuidsAsIdsAndKnowsTheirIndex) {
  nvidia(two_);
  const Devices devices = discover({"CUDA_VISIBLE_DEVICES=GPU-bbbb"});
  ASSERT_THAT(ids(devices.slots), ElementsAre("GPU-bbbb"));
  EXPECT_EQ(devices.slots[0].ordinal, 1);
  EXPECT_EQ(devices.slots[0].memory_bytes, 40536ull << 20);
  EXPECT_THAT(ids(discover({"CUDA_VISIBLE_DEVICES=MIG-1-2-3"}).slots), ElementsAre("MIG-1-2-3"));
}

TEST_F(DiscoverDevices, AToolThatFailsOrBabblesFindsNothing) {
  write_program(dir() / "nvidia-smi", "#!/bin/sh\necho 0, GPU-a, 100\nexit 9\n");
  EXPECT_EQ(discover().backend, Backend::none);
  nvidia("No devices were found");
  EXPECT_EQ(discover().backend, Backend::none);
  rocm("{ torn");
  EXPECT_EQ(discover().backend, Backend::none);
}

TEST_F(DiscoverDevices, ReadsRocmSmi) {
  rocm(R"json(WARNING: a word first
{"card1": {"Unique ID": "0xbeef", "VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "9000000000"},
 "card0": {"VRAM Total Memory (B)": "1000"}, "system": {"x": "y"}})json");
  Devices devices = discover();
  EXPECT_EQ(devices.backend, Backend::hip);
  ASSERT_THAT(ids(devices.slots), ElementsAre("0", "1"));
  EXPECT_EQ(devices.slots[1].memory_bytes, 68702699520u);
  EXPECT_EQ(devices.slots[1].memory_in_use_bytes, 9000000000u);
  devices = discover({"ROCR_VISIBLE_DEVICES=GPU-beef"});
  EXPECT_EQ(devices.backend, Backend::rocr);
  EXPECT_THAT(ids(devices.slots), ElementsAre("GPU-beef"));
}

TEST_F(DiscoverDevices, HipReadsCudasVariableWhereItsOwnIsEmpty) {
  rocm(R"json({"card0": {"VRAM Total Memory (B)": "1000"}, "card1": {"VRAM Total Memory (B)": "1000"}})json");
  EXPECT_THAT(ids(discover({"CUDA_VISIBLE_DEVICES=1"}).slots), ElementsAre("1"));
  EXPECT_THAT(ids(discover({"HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=1"}).slots), ElementsAre("1"));
  EXPECT_THAT(ids(discover({"HIP_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1"}).slots), ElementsAre("0"));
}

TEST_F(DiscoverDevices, TakesLevelZeroDevicesFromTheMask) {
  const Devices devices = discover({"ZE_AFFINITY_MASK=0.0,0.1"});
  EXPECT_STREQ(visibility_variable(devices.backend), "ZE_AFFINITY_MASK");
  EXPECT_THAT(ids(devices.slots), ElementsAre("0.0", "0.1"));
  EXPECT_EQ(devices.slots[1].ordinal, std::nullopt) << "a tile has no index that the deepspeed launcher takes";
  const Devices whole = discover({"ZE_AFFINITY_MASK=2, 3"});
  EXPECT_THAT(ids(whole.slots), ElementsAre("2", "3"));
  EXPECT_EQ(whole.slots[0].ordinal, 2);
  EXPECT_EQ(whole.slots[1].ordinal, 3);
}

Devices four_gpus() {
  Devices devices;
  devices.backend = Backend::cuda;
  for (int i = 0; i < 4; ++i) devices.slots.push_back({std::to_string(i), i, 1000u * static_cast<unsigned>(4 - i)});
  return devices;
}

SlotRequest request(std::optional<int> slots, std::optional<int> per_trial, std::optional<int> command = {}) {
  SlotRequest request{};
  request.slots = slots;
  request.slots_per_trial = per_trial;
  request.command_slots = command;
  return request;
}

TEST(PlanSlots, WithoutAcceleratorATrialTakesAllThereAreAndItIsReported) {
  auto plan = plan_slots({}, request({}, {}, 2));
  EXPECT_EQ(plan.slots.size(), 2u);
  EXPECT_EQ(plan.slots_per_trial, 2);
  EXPECT_EQ(plan.notices.size(), 1u);
  plan = plan_slots({}, request({}, {}));
  EXPECT_EQ(plan.slots.size(), 1u);
  plan = plan_slots({}, request(8, 2));
  EXPECT_EQ(plan.slots.size(), 8u);
  EXPECT_THAT(plan.notices, IsEmpty());
}

TEST(PlanSlots, ATrialTakesWhatItsCommandAsksForElseAll) {
  EXPECT_EQ(plan_slots(four_gpus(), request({}, {})).slots_per_trial, 4);
  EXPECT_EQ(plan_slots(four_gpus(), request({}, {}, 2)).slots_per_trial, 2);
  EXPECT_EQ(plan_slots(four_gpus(), request({}, 1, 2)).slots_per_trial, 1);
  const auto plan = plan_slots(four_gpus(), request(3, {}));
  EXPECT_EQ(plan.slots_per_trial, 3);
  EXPECT_EQ(plan.device_memory_bytes, 2000u);
}

TEST(PlanSlots, RefusesWhatCannotRun) {
  const auto message = [](const SlotRequest& wanted) { return error_of([&] { plan_slots(four_gpus(), wanted); }); };
  EXPECT_THAT(message(request({}, 5)), HasSubstr("--slots-per-trial is 5"));
  EXPECT_THAT(message(request({}, {}, 8)), HasSubstr("command takes 8"));
  EXPECT_THAT(message(request(9, {})), HasSubstr("only 4 devices"));
  EXPECT_THAT(message(request(0, {})), HasSubstr("--slots is 0"));
  EXPECT_THAT(message(request({}, -1)), HasSubstr("at least 1"));
  SlotRequest limited = request({}, 2);
  limited.max_slots = 1;
  EXPECT_THAT(message(limited), HasSubstr("only 1 slot"));
}

}  // namespace
}  // namespace dsat::host
