// Exceptions as lines and exit statuses.
#include "terminal/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <new>

#include "captured.h"
#include "dsat/error.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class Exception>
std::string line_of(const Exception& exception, int expected_status) {
  Captured captured;
  const int status = guarded(captured.console, [&]() -> int { throw exception; });
  EXPECT_EQ(status, expected_status);
  return captured.err();
}

TEST(Guarded, ReturnsTheStatusOfWhatItRuns) {
  Captured captured;
  EXPECT_EQ(guarded(captured.console, [] { return 3; }), 3);
  EXPECT_EQ(captured.err(), "");
}

TEST(Guarded, TheUsersMistakeAndTheMachinesHaveTheirOwnStatus) {
  EXPECT_EQ(line_of(Error("wrong, here, do that"), kUsage), "dsat-host: wrong, here, do that\n");
  EXPECT_EQ(line_of(Error(DSAT_INTERNAL, "the disk is full"), kFailed), "dsat-host: the disk is full\n");
}

TEST(Guarded, OtherLibrariesAreNotQuoted) {
  const auto denied = std::make_error_code(std::errc::permission_denied);
  EXPECT_EQ(line_of(std::filesystem::filesystem_error("cannot do", "/a/file", denied), kFailed),
            "dsat-host: /a/file: Permission denied\n");
  try {
    Json("text").get<int>();
  } catch (const Json::exception& error) {
    const std::string line = line_of(error, kFailed);
    EXPECT_THAT(line, HasSubstr("unexpected type"));
    EXPECT_THAT(line, Not(HasSubstr("json.exception")));
  }
  EXPECT_THAT(line_of(std::bad_alloc(), kFailed), HasSubstr("no memory left"));
}

}  // namespace
}  // namespace dsat::cli
