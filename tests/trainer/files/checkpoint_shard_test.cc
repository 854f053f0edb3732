// A shard is read as it was written, and a damaged one is refused.
// Files are cut short and changed byte by byte.
#include "files/checkpoint_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <vector>

#include "support/error_of.h"
#include "support/temp_dir.h"

// Length of the file at each wait for the disk.
static std::vector<off_t> synced;

// What the next reads of a file fail with.
static std::deque<int> failures;

// In place of the system's, for the whole program.
extern "C" ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  if (failures.empty()) return ::syscall(SYS_pread64, fd, to, bytes, at);
  errno = failures.front();
  failures.pop_front();
  return -1;
}
extern "C" int fsync(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) synced.push_back(info.st_size);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointShardTest : public TempDirTest {
 protected:
  CheckpointShardTest() {
    write_shard(file(), {{0, 5, 2, 0}, {3, 0, 1, 3}}, {{"master", master_.data()}, {"state1", state_.data()}},
                {{"own", own_.data(), own_.size()}});
  }

  std::string file() const { return (dir() / "rank.ckpt").string(); }
  std::string error_of_reading() const {
    return error_of([&] { const ShardReader reader(file()); });
  }
  void overwrite(std::streamoff at, const std::string& bytes) const {
    std::fstream out(file(), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(at);
    out << bytes;
  }

  std::array<float, 4> master_ = {1, 2, 3, 4}, state_ = {5, 6, 7, 8};
  std::string own_ = "state of this rank";
};

TEST_F(CheckpointShardTest, ReadsBackRangesOfParameters) {
  const ShardReader reader(file());
  ASSERT_EQ(reader.ranges().size(), 2u);
  EXPECT_EQ(reader.ranges()[1].parameter, 3);
  EXPECT_EQ(reader.ranges()[0].begin, 5);
  EXPECT_EQ(reader.ranges()[1].shard_begin, 2);
  EXPECT_TRUE(reader.has_array("state1"));
  EXPECT_FALSE(reader.has_array("state2"));
  std::array<float, 3> values{};
  reader.read("master", 0, 3, values.data());
  EXPECT_THAT(values, ElementsAre(1, 2, 4));  // the third element of the shard was padding
  reader.read("state1", 1, 2, values.data());
  EXPECT_THAT(values, ElementsAre(6, 8, 4));
  std::string own(own_.size(), ' ');
  reader.read({"own", own.data(), own.size()});
  EXPECT_EQ(own, own_);
}

// Else the wait for a slow disk is so long that the rank seems to hang.
TEST_F(CheckpointShardTest, TheDiskIsWaitedForInSmallParts) {
  std::vector<float> values(kUnsyncedBytes / 2, 1.0F);  // two parts, and the header before them
  synced.clear();
  write_shard(file(), {{0, 0, static_cast<int64_t>(values.size()), 0}}, {{"master", values.data()}}, {});
  ASSERT_EQ(synced.size(), 3u);
  off_t before = 0;
  for (const off_t size : synced) {
    EXPECT_LE(size - before, static_cast<off_t>(kUnsyncedBytes));
    before = size;
  }
  EXPECT_EQ(before, static_cast<off_t>(std::filesystem::file_size(file())));
  EXPECT_EQ(ShardReader(file()).ranges().size(), 1u);
}

TEST_F(CheckpointShardTest, ABlobMustFit) {
  const ShardReader reader(file());
  EXPECT_THROW(reader.check({"own", nullptr, 1}), Error);
  EXPECT_THROW(reader.check({"other", nullptr, 1}), Error);
}

TEST_F(CheckpointShardTest, EveryTruncationIsFound) {
  const auto whole = std::filesystem::file_size(file());
  for (uintmax_t size : {whole - 1, whole - 64, uintmax_t{40}, uintmax_t{7}, uintmax_t{0}}) {
    std::filesystem::resize_file(file(), size);
    EXPECT_THAT(error_of_reading(), HasSubstr("rank.ckpt is truncated")) << size << " bytes";
  }
}

TEST_F(CheckpointShardTest, AFileThatIsCutWhileItIsReadIsNamed) {
  const ShardReader reader(file());
  std::filesystem::resize_file(file(), 40);
  std::array<float, 3> values{};
  EXPECT_THAT(error_of([&] { reader.read("master", 0, 3, values.data()); }), HasSubstr("it is truncated"));
}

TEST_F(CheckpointShardTest, AReadThatIsInterruptedGoesOnAndOneThatFailsIsNamed) {
  const ShardReader reader(file());
  std::array<float, 3> values{};
  failures = {EINTR};
  reader.read("master", 0, 3, values.data());
  EXPECT_THAT(values, ElementsAre(1, 2, 4));
  failures = {EIO};
  EXPECT_THAT(error_of([&] { reader.read("master", 0, 3, values.data()); }),
              AllOf(HasSubstr("cannot read " + file()), HasSubstr("Input/output error")));
}

TEST_F(CheckpointShardTest, WhatIsNoShardIsNamed) {
  overwrite(16, "{{{");
  EXPECT_THAT(error_of_reading(), HasSubstr("is damaged"));
  overwrite(8, "\x07");
  EXPECT_THAT(error_of_reading(), AllOf(HasSubstr("version 7"), HasSubstr("version 1")));
  overwrite(0, "PK");
  EXPECT_THAT(error_of_reading(), HasSubstr("is no checkpoint"));
  std::filesystem::remove(file());
  EXPECT_THAT(error_of_reading(), HasSubstr("rank.ckpt is missing"));
}

}  // namespace
}  // namespace dsat::trainer
