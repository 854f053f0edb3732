// Files that are read whole or refused, and written whole or not at all.
#include "dsat/base/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "dsat/error.h"
#include "support/error_of.h"
#include "support/full_disk.h"
#include "support/temp_dir.h"

namespace dsat {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Files : public TempDirTest {
 protected:
  std::string refusal(const fs::path& file, size_t max_bytes = kMaxFileBytes) {
    try {
      read_file(file, max_bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir()), fs::directory_iterator()));
  }
};

TEST_F(Files, AreReadWhole) {
  const std::string bytes("a\0b\n", 4);
  write_text(dir() / "x", bytes);
  EXPECT_EQ(read_file(dir() / "x"), bytes);
  write_text(dir() / "empty", "");
  EXPECT_EQ(read_file(dir() / "empty"), "");
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Name:")) << "files of size 0 that have content";
}

TEST_F(Files, SayWhyTheyCannotBeRead) {
  EXPECT_THAT(refusal(dir() / "none"), HasSubstr((dir() / "none").string() + ": No such file"));
  EXPECT_THAT(refusal(dir()), HasSubstr("folder"));
  ASSERT_EQ(mkfifo((dir() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(dir() / "pipe"), HasSubstr("pipe")) << "and nobody waits for a writer";
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("regular file"));
}

TEST_F(Files, ThatAreTooLargeAreNotRead) {
  write_text(dir() / "x", "0123456789");
  EXPECT_EQ(read_file(dir() / "x", 10), "0123456789");
  EXPECT_THAT(refusal(dir() / "x", 9), HasSubstr("9 bytes"));
  std::ofstream(dir() / "sparse").close();
  fs::resize_file(dir() / "sparse", uint64_t{3} << 30);
  EXPECT_THAT(refusal(dir() / "sparse"), HasSubstr("larger than"));
}

TEST_F(Files, ThatAUserNamesMayBePipes) {
  const fs::path pipe = dir() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string bytes(3 * 65536, 'x');  // more than a pipe holds at once
  std::thread writer([&] { std::ofstream(pipe) << bytes; });
  EXPECT_EQ(try_read_input(pipe).bytes, bytes);
  writer.join();
  write_text(dir() / "x", "a file");
  EXPECT_EQ(try_read_input(dir() / "x").bytes, "a file");
  EXPECT_THAT(try_read_input(dir()).problem, HasSubstr("folder"));
  EXPECT_THAT(try_read_input("/dev/zero").problem, HasSubstr("regular file"));
  EXPECT_EQ(try_read_input(dir() / "none").problem, "No such file or directory");
}

TEST_F(Files, APipeIsNotReadForEver) {
  const fs::path pipe = dir() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string silent = try_read_input(pipe, std::chrono::milliseconds(1)).problem;
  EXPECT_THAT(silent, AllOf(HasSubstr("pipe"), HasSubstr("0.001 s")));
  std::thread writer([&] { std::ofstream(pipe) << "0123456789"; });
  EXPECT_THAT(try_read_input(pipe, kPipePatience, 9).problem, HasSubstr("9 bytes"));
  writer.join();
}

TEST_F(Files, HaveATail) {
  write_text(dir() / "log", "0123456789");
  EXPECT_EQ(read_tail(dir() / "log", 4), "6789");
  EXPECT_EQ(read_tail(dir() / "log", 100), "0123456789");
  EXPECT_EQ(read_tail(dir() / "none", 4), "");
  EXPECT_EQ(read_tail(dir(), 4), "");
}

TEST_F(Files, AreReplacedAndLeaveNothingElse) {
  write_text(dir() / "best.json", "a much longer old text");
  for (const Durability durability : {Durability::synced, Durability::renamed}) {
    const std::string bytes("a\0b", 3);
    write_file_atomically(dir() / "best.json", bytes, durability);
    EXPECT_EQ(read_file(dir() / "best.json"), bytes);
    write_file_atomically(dir() / "best.json", "", durability);
    EXPECT_EQ(read_file(dir() / "best.json"), "");
    EXPECT_EQ(entries(), 1u);
  }
}

TEST_F(Files, MayHaveTheLongestName) {
  write_file_atomically(dir() / std::string(255, 'n'), "text");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ThatCannotBeWrittenAreNamed) {
  try {
    write_file_atomically(dir() / "none" / "x", "text");
    ADD_FAILURE() << "the folder does not exist";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr((dir() / "none/x").string() + ": No such file"));
    EXPECT_EQ(error.code(), DSAT_INTERNAL);
  }
}

TEST_F(Files, AFailureLeavesTheOldOneAndNoTemporaryFile) {
  fs::create_directories(dir() / "x" / "full");  // a folder that is not empty cannot be replaced
  EXPECT_THROW(write_file_atomically(dir() / "x", "text"), Error);
  EXPECT_TRUE(fs::exists(dir() / "x" / "full"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AWriteThatFailsHalfwayLeavesTheOldOne) {
  write_text(dir() / "best.json", "old");
  std::string refused;
  {
    const FullDisk full(4);
    refused = error_of([&] { write_file_atomically(dir() / "best.json", "0123456789"); }, DSAT_INTERNAL);
  }
  EXPECT_THAT(refused, HasSubstr((dir() / "best.json").string() + ": File too large"));
  EXPECT_EQ(read_text(dir() / "best.json"), "old");
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace dsat
