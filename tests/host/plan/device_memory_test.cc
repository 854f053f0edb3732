// Where the memory of a device comes from, and what the margin leaves of it.
#include "plan/device_memory.h"

#include <gtest/gtest.h>

namespace dsat::host {
namespace {

Plan memory_plan(std::optional<uint64_t> given, std::optional<uint64_t> of_slots, double margin = 0) {
  Plan plan;
  plan.device_memory_bytes = given;
  plan.slots.device_memory_bytes = of_slots;
  plan.memory_margin = margin;
  return plan;
}

TEST(DeviceMemory, IsUnknownUntilSomebodySaysIt) {
  DeviceMemory memory(memory_plan({}, {}, 0.5));
  EXPECT_EQ(memory.all(), std::nullopt);
  EXPECT_EQ(memory.usable(), std::nullopt);
  memory.learn(std::nullopt);
  EXPECT_EQ(memory.all(), std::nullopt);
  memory.learn(80);
  EXPECT_EQ(memory.all(), 80u);
  EXPECT_EQ(memory.usable(), 40u);
}

TEST(DeviceMemory, TheFirstReportStaysAndOutdoesTheVendorsTool) {
  DeviceMemory memory(memory_plan({}, 100));
  EXPECT_EQ(memory.all(), 100u);
  EXPECT_EQ(memory.given_or_reported(), std::nullopt);
  memory.learn(80);
  memory.learn(60);
  EXPECT_EQ(memory.all(), 80u);
  EXPECT_EQ(memory.given_or_reported(), 80u);
}

TEST(DeviceMemory, WhatIsGivenOutdoesAReport) {
  DeviceMemory memory(memory_plan(50, 100));
  memory.learn(80);
  EXPECT_EQ(memory.all(), 50u);
}

TEST(DeviceMemory, TheMarginIsTakenOffWhatATrialMayUse) {
  const DeviceMemory memory(memory_plan({}, 1000, 0.25));
  EXPECT_EQ(memory.all(), 1000u);
  EXPECT_EQ(memory.usable(), 750u);
  EXPECT_EQ(DeviceMemory(memory_plan({}, 1000)).usable(), 1000u);
}

}  // namespace
}  // namespace dsat::host
