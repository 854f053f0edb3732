// One host at a time; the lock says who, and ends with its holder.
#include "record/run_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include "host/study/study_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

class RunLockTest : public StudyTest {};

TEST_F(RunLockTest, ASecondHolderIsRefusedAndToldWhoHasIt) {
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

TEST_F(RunLockTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THAT(error_of([&] { RunLock::take(dir() / "nowhere"); }), HasSubstr("dsat.lock: No such file"));
}

}  // namespace
}  // namespace dsat::host
