// The pretended device's memory: every tensor is counted, and an allocation over the budget is refused with its reason.
// Sizes are small numbers of floats, so that counts can be compared to the byte.
#include "device/budget_allocator.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <vector>

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

at::Tensor floats(int64_t count) { return at::empty({count}, at::TensorOptions().dtype(at::kFloat)); }

// In one test: the allocator is the whole process's, and the first refusal is kept.
TEST(BudgetAllocatorTest, CountsAndRefusesTensors) {
  set_device_memory(install_budget(1 << 20));
  const uint64_t before = memory_in_use();
  {
    const at::Tensor tensor = floats(1000);
    EXPECT_EQ(memory_in_use(), before + 4000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64, 0u);
  }
  EXPECT_EQ(memory_in_use(), before);
  EXPECT_GE(memory_peak(), before + 4000);
  EXPECT_FALSE(out_of_memory().has_value());
  begin_memory_window();
  EXPECT_EQ(memory_window_peak(), before);  // what was before does not count
  floats(500);
  EXPECT_EQ(memory_window_peak(), before + 2000);

  const at::Tensor kept = floats((1 << 18) - 1000 - static_cast<int64_t>(before) / 4);
  EXPECT_THROW(floats(2000), c10::OutOfMemoryError);
  EXPECT_NO_THROW(floats(500));
  const OutOfMemory refused = out_of_memory().value();
  EXPECT_EQ(refused.requested, 8000u);
  EXPECT_EQ(refused.budget, 1u << 20);
  EXPECT_THAT(describe(refused),
              AllOf(HasSubstr("out of memory"), HasSubstr("8.00 kB"), HasSubstr("1.04 MB of 1.05 MB")));
  // Other tests run in this process: their ranks' failures are not for want of memory.
  clear_out_of_memory();
  EXPECT_FALSE(out_of_memory().has_value());
  set_device_memory(install_budget(std::nullopt));
  EXPECT_NO_THROW(floats(1 << 20));
}

// The process takes from the system nearly the peak that is reported.
TEST(BudgetAllocatorTest, AFreedBlockHasRoomForTheNextOfItsSize) {
  set_device_memory(install_budget(std::nullopt));
  std::vector<at::Tensor> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(floats(25000));
  const size_t before = mallinfo2().arena;
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i] = floats(25000);
  EXPECT_LT(mallinfo2().arena, before + 2 * 100000);
}

}  // namespace
}  // namespace dsat::trainer
