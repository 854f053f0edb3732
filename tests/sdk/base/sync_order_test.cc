// What a file that must survive a power loss asks of the system, and in which order. The test program's own fsync and
// rename stand in front of the C library's and note each call.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <vector>

#include "dsat/base/files.h"
#include "support/temp_dir.h"

namespace {

std::mutex g_mutex;
std::vector<std::string> g_calls;

void note(const std::string& call) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_calls.push_back(call);
}

}  // namespace

extern "C" int fsync(int fd) {
  struct stat info {};
  note(fstat(fd, &info) == 0 && S_ISDIR(info.st_mode) ? "fsync folder"
                                                      : "fsync " + std::to_string(info.st_size) + " bytes");
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  note("rename");
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace dsat {
namespace {

using ::testing::ElementsAre;

class SyncOrder : public TempDirTest {
 protected:
  std::vector<std::string> calls_of_writing(Durability durability) {
    g_calls.clear();
    write_file_atomically(dir() / "best.json", "seven77", durability);
    return g_calls;
  }
};

TEST_F(SyncOrder, WhatIsToLastIsOnTheDiskBeforeItHasItsNameAndTheNameAfter) {
  EXPECT_THAT(calls_of_writing(Durability::synced), ElementsAre("fsync 7 bytes", "rename", "fsync folder"));
}

TEST_F(SyncOrder, WhatCanBeMadeAnewWaitsForNoDisk) {
  EXPECT_THAT(calls_of_writing(Durability::renamed), ElementsAre("rename"));
}

}  // namespace
}  // namespace dsat
