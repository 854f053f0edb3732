// DeepSpeed's check of batch sizes, in words for people.
#include "outputs/batch_assertion.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kConfig = {
    {"train_batch_size", 32}, {"train_micro_batch_size_per_gpu", 4}, {"gradient_accumulation_steps", 1}};

std::string text(const std::string& numbers) {
  return "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
         "gradient_acc_step * world_size " +
         numbers;
}

TEST(BatchAssertionTest, TheLastNumberIsTheProcesses) {
  EXPECT_THAT(explain_batch_assertion(text("32 != 4 * 1 * 1"), kConfig),
              AllOf(HasSubstr("found 1 data-parallel"), HasSubstr("room for 8"), HasSubstr("--slots-per-trial 1")));
}

TEST(BatchAssertionTest, OtherTextsAndOtherSizesSayNothing) {
  EXPECT_EQ(explain_batch_assertion("AssertionError: 32 != 4 * 1 * 1", kConfig), "");
  EXPECT_EQ(explain_batch_assertion(text("64 != 4 * 1 * 1"), kConfig), "");
  EXPECT_EQ(explain_batch_assertion(text("32 != 8 * 1 * 1"), kConfig), "");
  EXPECT_EQ(explain_batch_assertion(text("32 != 4 * 3 * 1"), kConfig), "");
  EXPECT_EQ(explain_batch_assertion(text("32 != 4 * 1 * 0"), kConfig), "");
  EXPECT_EQ(explain_batch_assertion(text(""), kConfig), "");
  EXPECT_EQ(explain_batch_assertion(text("32 != 4 * 1 * 1"), Json()), "");
}

}  // namespace
}  // namespace dsat::host
