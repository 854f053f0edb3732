// Ranks that fail, hang, are killed or are stopped: which cause the launcher reports.
// Real processes are forked.
#include "ranks/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;

// Ends only when it is killed.
[[noreturn]] void hang() {
  while (true) ::pause();
}

TEST(LauncherTest, AllRanksRunAndSucceed) {
  const RankResult result = launch(3, [](int rank) {
    if (rank > 2) return RankResult{FailureKind::error, "no such rank"};
    return RankResult{};
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(LauncherTest, TheFirstOwnFailureWinsAndTheRestIsEnded) {
  const RankResult result = launch(3, [](int rank) {
    if (rank == 1) return RankResult{FailureKind::out_of_memory, "rank 1 is full"};
    hang();
  });
  EXPECT_EQ(result.kind, FailureKind::out_of_memory);
  EXPECT_EQ(result.message, "rank 1 is full");
}

// Whichever of the two is heard first.
TEST(LauncherTest, ALostPeerGivesWayToTheCause) {
  for (int cause : {0, 1}) {
    const RankResult result = launch(2, [=](int rank) {
      if (rank == cause) return RankResult{FailureKind::error, "cause"};
      return RankResult{FailureKind::peer_lost, "lost"};
    });
    EXPECT_EQ(result.message, "cause");
  }
}

TEST(LauncherTest, WithoutACauseALostPeerIsToldAfterAWhile) {
  const RankResult result = launch(2, [](int rank) {
    if (rank == 0) return RankResult{FailureKind::peer_lost, "lost"};
    hang();
  });
  EXPECT_EQ(result.kind, FailureKind::peer_lost);
}

TEST(LauncherTest, ASignalAndAStatusAreCauses) {
  const RankResult killed = launch(2, [](int rank) -> RankResult {
    if (rank == 1) ::raise(SIGSEGV);
    hang();
  });
  EXPECT_THAT(killed.message, HasSubstr("rank 1 was killed by signal 11"));
  const RankResult left = launch(2, [](int rank) -> RankResult {
    if (rank == 0) ::_exit(7);
    hang();
  });
  EXPECT_EQ(left.message, "rank 0 ended with status 7");
}

TEST(LauncherTest, AFreePortIsOutsideTheReservedOnes) { EXPECT_GE(free_port(), 1024); }

}  // namespace
}  // namespace dsat::trainer
