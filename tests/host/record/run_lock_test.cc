// One host at a time; the lock says who, and ends with its holder.
#include "record/run_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

class RunLockTest : public StudyTest {};

TEST_F(RunLockTest, ASecondHolderIsRefusedAndToldWhoHasIt) {
  const Result<RunLock> first = RunLock::take(dir());
  ASSERT_TRUE(first.ok());
  const Result<RunLock> second = RunLock::take(dir());
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(RunLock::is_held(dir()));
  EXPECT_EQ(second.status().code(), Status::Code::invalid);
  EXPECT_THAT(second.status().message(), HasSubstr("pid " + std::to_string(getpid())));
  EXPECT_THAT(second.status().message(), HasSubstr("boot "));
  EXPECT_TRUE(fs::exists(dir() / "dsat.lock")) << "the refused one removes nothing";
}

TEST_F(RunLockTest, IsFreeAgainWhenItsHolderIsDone) {
  { ASSERT_TRUE(RunLock::take(dir()).ok()); }
  EXPECT_FALSE(fs::exists(dir() / "dsat.lock"));
  EXPECT_TRUE(RunLock::take(dir()).ok());
}

TEST_F(RunLockTest, MovesWithItsOwner) {
  Result<RunLock> first = RunLock::take(dir());
  ASSERT_TRUE(first.ok());
  const RunLock kept(std::move(first).value());
  EXPECT_FALSE(RunLock::take(dir()).ok());
}

TEST_F(RunLockTest, AKilledHolderLeavesAFileButNoLock) {
  const pid_t child = fork();
  if (child == 0) {
    const Result<RunLock> lock = RunLock::take(dir());
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(fs::exists(dir() / "dsat.lock"));
  EXPECT_FALSE(RunLock::is_held(dir()));
  EXPECT_TRUE(RunLock::take(dir()).ok());
}

TEST_F(RunLockTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THAT(RunLock::take(dir() / "nowhere").status().message(), HasSubstr("dsat.lock: No such file"));
}

}  // namespace
}  // namespace dsat::host
