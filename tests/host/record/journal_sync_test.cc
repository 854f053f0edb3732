// A turn that is committed is on the disk, which no kill can show and a power loss would. The test program's own fsync
// and fdatasync stand in front of the C library's and count.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "record/journal.h"
#include "support/temp_dir.h"

namespace {
std::atomic<int> g_syncs{0};  // of files, not of folders

void count(int fd) {
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) ++g_syncs;
}

}  // namespace

extern "C" int fsync(int fd) {
  count(fd);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int fdatasync(int fd) {
  count(fd);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace dsat::host {
namespace {

class JournalSync : public TempDirTest {};

TEST_F(JournalSync, EveryTurnIsOnTheDiskWhenItIsCommitted) {
  const auto journal = Journal::create(dir());
  for (int turn = 0; turn < 3; ++turn) {
    const int before = g_syncs;
    journal->begin();
    journal->put_meta("turn", turn);
    journal->commit();
    EXPECT_GT(g_syncs, before) << "turn " << turn;
  }
}

TEST_F(JournalSync, AJournalThatIsMadeAnewIsOnTheDiskBeforeItTakesTheOldOnesPlace) {
  int before = 0;
  Journal::replace(dir(), [&](Journal& journal) {
    journal.put_meta("plan", 1);
    before = g_syncs;
  });
  EXPECT_GT(g_syncs, before);
}

}  // namespace
}  // namespace dsat::host
