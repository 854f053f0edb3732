// Exceptions become statuses at the library's edge, and back: with the right code, and with the message as it was.
#include "base/guarded.h"

#include <stdexcept>

#include "support/error_of.h"

namespace dsat::host {
namespace {

TEST(GuardedTest, AValueIsAResultAndNothingIsAStatus) {
  EXPECT_EQ(as_result([] { return 7; }).value(), 7);
  EXPECT_TRUE(as_result([] {}).ok());
}

TEST(GuardedTest, TheUsersMistakeIsInvalidAndAllElseIsInternal) {
  const auto status_of_thrown = [](auto error) { return as_result([&]() -> int { throw error; }).status(); };
  const Status mistake = status_of_thrown(Error("no such plugin"));
  EXPECT_EQ(mistake.code(), Status::Code::invalid);
  EXPECT_EQ(mistake.message(), "no such plugin");
  EXPECT_EQ(status_of_thrown(Error(DSAT_DATA_LOSS, "torn")).code(), Status::Code::internal);
  EXPECT_EQ(status_of_thrown(std::runtime_error("odd")).code(), Status::Code::internal);
  EXPECT_EQ(status_of_thrown(std::bad_alloc()).message(), "not enough memory");
}

TEST(GuardedTest, AFailureIsThrownWithItsCode) {
  EXPECT_EQ(or_throw(Result<int>(7)), 7);
  EXPECT_NO_THROW(or_throw(Status()));
  EXPECT_EQ(error_of([] { or_throw(Status::invalid("bad option")); }), "bad option");
  EXPECT_EQ(error_of([] { or_throw(Result<int>(Status::internal("full"))); }, DSAT_INTERNAL), "full");
}

}  // namespace
}  // namespace dsat::host
