#include "base/atomic_file.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

using AtomicFile = TempDirTest;

size_t entries(const std::filesystem::path& folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST_F(AtomicFile, ReplacesAFileAndLeavesNothingElse) {
  write_text(dir() / "best.json", "a much longer old text");
  ASSERT_TRUE(write_file_atomically(dir() / "best.json", "new").ok());
  EXPECT_EQ(read_text(dir() / "best.json"), "new");
  EXPECT_EQ(entries(dir()), 1u);
}

TEST_F(AtomicFile, WritesEmptyAndBinaryContent) {
  const std::string bytes("a\0b", 3);
  ASSERT_TRUE(write_file_atomically(dir() / "x", bytes).ok());
  EXPECT_EQ(read_text(dir() / "x"), bytes);
  ASSERT_TRUE(write_file_atomically(dir() / "x", "").ok());
  EXPECT_EQ(read_text(dir() / "x"), "");
}

TEST_F(AtomicFile, NamesAFolderThatIsNotThere) {
  const Status status = write_file_atomically(dir() / "none" / "x", "text");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("none/x"), std::string::npos) << status.message();
}

TEST_F(AtomicFile, AFailureLeavesTheOldOneAndNoTemporaryFile) {
  std::filesystem::create_directories(dir() / "x" / "full");  // a folder that is not empty cannot be replaced
  EXPECT_FALSE(write_file_atomically(dir() / "x", "text").ok());
  EXPECT_TRUE(std::filesystem::exists(dir() / "x" / "full"));
  EXPECT_EQ(entries(dir()), 1u);
}

TEST(Clock, WritesSixFractionalDigitsInUtc) {
  using namespace std::chrono;
  EXPECT_EQ(format_rfc3339(system_clock::time_point{}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(format_rfc3339(system_clock::time_point{} + seconds(951827696) + microseconds(125)),
            "2000-02-29T12:34:56.000125Z");
  EXPECT_EQ(format_rfc3339(system_clock::time_point{} - microseconds(1)), "1969-12-31T23:59:59.999999Z");
  EXPECT_THAT(utc_now(), ::testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z"));
}

}  // namespace
}  // namespace dsat::host
