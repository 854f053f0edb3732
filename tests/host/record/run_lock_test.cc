// One host at a time; the lock says who, and ends with its holder.
#include "record/run_lock.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>

#include "host/study/study_fixture.h"
#include "support/error_of.h"
#include "support/other_user.h"

namespace dsat::host {
namespace {

class RunLockTest : public StudyTest {};

TEST_F(RunLockTest, ASecondHolderIsRefusedWithWhoHasIt) {
  const RunLock first = RunLock::take(dir());
  const std::string refusal = error_of([&] { RunLock::take(dir()); });
  EXPECT_TRUE(RunLock::is_held(dir()));
  EXPECT_THAT(refusal, HasSubstr("pid " + std::to_string(getpid())));
  EXPECT_THAT(refusal, HasSubstr("boot "));
  EXPECT_TRUE(fs::exists(dir() / "dsat.lock")) << "the refused one removes nothing";
}

TEST_F(RunLockTest, IsFreeAgainWhenItsHolderIsDone) {
  { const RunLock lock = RunLock::take(dir()); }
  EXPECT_FALSE(fs::exists(dir() / "dsat.lock"));
  EXPECT_NO_THROW(RunLock::take(dir()));
}

TEST_F(RunLockTest, MovesWithItsOwner) {
  RunLock first = RunLock::take(dir());
  const RunLock kept(std::move(first));
  EXPECT_THROW(RunLock::take(dir()), Error);
}

TEST_F(RunLockTest, AKilledHolderLeavesAFileButNoLock) {
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock = RunLock::take(dir());
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(fs::exists(dir() / "dsat.lock"));
  EXPECT_FALSE(RunLock::is_held(dir()));
  EXPECT_NO_THROW(RunLock::take(dir()));
}

// A child that was started and is not yet another program: it has what its parent had open. It ends when the lock's
// file has been opened a second time, as one does who asks again.
void hold_until_asked_again(const fs::path& file, int is_ready) {
  alarm(60);
  const int watch = inotify_init();
  inotify_add_watch(watch, file.c_str(), IN_OPEN);
  if (write(is_ready, "r", 1) != 1) _exit(9);
  inotify_event events[16];
  for (ssize_t seen = 0; seen < 2;) seen += read(watch, events, sizeof events) / static_cast<ssize_t>(sizeof *events);
  _exit(0);
}

TEST_F(RunLockTest, ChildrenOfAKilledHolderAreWaitedFor) {
  const pid_t holder = fork();
  if (holder == 0) {
    const RunLock lock = RunLock::take(dir());
    int ready[2];
    char byte;
    if (pipe(ready) != 0) _exit(9);
    if (fork() == 0) hold_until_asked_again(dir() / "dsat.lock", ready[1]);
    if (read(ready[0], &byte, 1) != 1) _exit(9);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(holder, &status, 0), holder);
  EXPECT_NO_THROW(RunLock::take(dir()));
}

TEST_F(RunLockTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THAT(error_of([&] { RunLock::take(dir() / "nowhere"); }), HasSubstr("dsat.lock: No such file"));
}

TEST_F(RunLockTest, NobodyElseCanReadAndSoLockIt) {
  write_text(dir() / "dsat.lock", "host other, pid 1, boot x");  // as earlier versions left it
  fs::permissions(dir() / "dsat.lock", fs::perms(0644));
  const RunLock lock = RunLock::take(dir());
  EXPECT_EQ(fs::status(dir() / "dsat.lock").permissions(), fs::perms(0600));
}

TEST_F(RunLockTest, AnotherProgramsLockIsNotThatOfADeadHost) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const int fd = open((dir() / "dsat.lock").c_str(), O_RDWR | O_CREAT, 0644);
    struct flock range {};
    range.l_type = F_RDLCK;
    if (fcntl(fd, F_SETLK, &range) != 0 || write(ready[1], "r", 1) != 1) _exit(9);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::string refusal = error_of([&] { RunLock::take(dir()); });
  EXPECT_THAT(refusal, HasSubstr("process " + std::to_string(child) + " holds its lock"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(RunLockTest, AFileThatIsNotItsOwnIsNotWritten) {
  write_text(dir() / "bashrc", "mine");
  const auto refusal = [&] { return error_of([&] { RunLock::take(dir()); }); };
  fs::create_symlink("bashrc", dir() / "dsat.lock");
  EXPECT_THAT(refusal(), HasSubstr("it is a link; remove it"));
  EXPECT_FALSE(RunLock::is_held(dir()));
  fs::remove(dir() / "dsat.lock");
  fs::create_hard_link(dir() / "bashrc", dir() / "dsat.lock");
  EXPECT_THAT(refusal(), HasSubstr("another name"));
  fs::remove(dir() / "dsat.lock");
  ASSERT_EQ(mkfifo((dir() / "dsat.lock").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("no regular file"));
  EXPECT_FALSE(RunLock::is_held(dir()));
  EXPECT_EQ(read_text(dir() / "bashrc"), "mine");
}

TEST_F(RunLockTest, AFolderThatOthersControlIsRefusedUnlessItIsTrusted) {
  fs::permissions(dir(), fs::perms::all);
  EXPECT_THAT(error_of([&] { RunLock::take(dir()); }), HasSubstr("--trust-folder"));
  EXPECT_FALSE(fs::exists(dir() / "dsat.lock"));
  EXPECT_NO_THROW(RunLock::take(dir(), Trust::others));
  fs::permissions(dir(), fs::perms::owner_all);
  DSAT_NEEDS_OTHER_USER();
  give_to_other_user(dir());
  EXPECT_THAT(error_of([&] { RunLock::take(dir()); }), HasSubstr("another user"));
  EXPECT_NO_THROW(RunLock::take(dir(), Trust::others));
}

// From now on this process meets a file system without locks.
void take_locks_away() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(9);
}

TEST_F(RunLockTest, AFileSystemWithoutLocksIsNamed) {
  const auto try_both = [&] {
    take_locks_away();
    for (const std::string& text :
         {error_of([&] { RunLock::take(dir()); }), error_of([&] { RunLock::take_if_free(dir()); })}) {
      if (text.find("dsat.lock: it cannot be locked (No locks available); give an --output-dir") == std::string::npos) {
        _exit(1);
      }
    }
    _exit(0);
  };
  EXPECT_EXIT(try_both(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dsat::host
