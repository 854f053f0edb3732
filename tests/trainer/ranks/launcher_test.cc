// Ranks that fail, hang, are killed or are stopped: which cause the launcher reports.
// Real processes are forked.
#include "ranks/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
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

// Whichever of the two is noticed first.
TEST(LauncherTest, ALostPeerGivesWayToTheCause) {
  for (int cause : {0, 1}) {
    const RankResult result = launch(2, [=](int rank) {
      if (rank == cause) return RankResult{FailureKind::error, "cause"};
      return RankResult{FailureKind::peer_lost, "lost"};
    });
    EXPECT_EQ(result.message, "cause");
  }
}

TEST(LauncherTest, WithoutACauseALostPeerIsReportedAfterAWhile) {
  const RankResult result = launch(2, [](int rank) {
    if (rank == 0) return RankResult{FailureKind::peer_lost, "lost"};
    hang();
  });
  EXPECT_EQ(result.kind, FailureKind::peer_lost);
}

bool handles_sigterm(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  const std::string caught = "SigCgt:";
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(caught, 0) == 0)
      return (std::stoull(line.substr(caught.size()), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
  }
  return false;
}

// Rank 1 lets SIGTERM pass, as one that computes for ever without a look at the request to stop.
[[noreturn]] void be_deaf_and(int signals) {
  static volatile std::sig_atomic_t received = 0;
  ::signal(SIGTERM, [](int) { received = received + 1; });
  while (!handles_sigterm(::getppid())) ::sched_yield();  // the launcher may still be forking
  for (int sent = 1; sent <= signals; ++sent) {
    ::kill(::getppid(), SIGTERM);
    while (received < sent) ::sched_yield();  // one that is still on its way would swallow the next
  }
  hang();
}

TEST(LauncherTest, ARankThatGoesOnAfterSigtermIsEndedWithTheOthers) {
  const auto run = [](int signals, std::chrono::seconds grace) {
    ::signal(SIGTERM, SIG_DFL);  // an earlier launch of this program has left its handler
    launch(2,
           [=](int rank) -> RankResult {
             if (rank == 1) be_deaf_and(signals);
             return {};
           },
           {"program", grace});
  };
  EXPECT_EXIT(run(1, std::chrono::seconds(0)), ::testing::KilledBySignal(SIGTERM),
              "program: SIGTERM: ending all ranks after waiting for rank.*1 for 0 s");
  EXPECT_EXIT(run(2, std::chrono::hours(1)), ::testing::KilledBySignal(SIGTERM), "ending all ranks");
}

TEST(LauncherTest, ASignalAndAStatusAreCauses) {
  const RankResult killed = launch(2, [](int rank) -> RankResult {
    if (rank == 1) ::raise(SIGABRT);  // a sanitizer would report SIGSEGV and exit
    hang();
  });
  EXPECT_THAT(killed.message, AllOf(HasSubstr("rank 1"), HasSubstr("signal 6")));
  const RankResult left = launch(2, [](int rank) -> RankResult {
    if (rank == 0) ::_exit(7);
    hang();
  });
  EXPECT_THAT(left.message, AllOf(HasSubstr("rank 0"), HasSubstr("status 7")));
}

TEST(LauncherTest, AStatusOf0BeforeTheBodyReturnsIsAFailure) {
  const RankResult all = launch(2, [](int) -> RankResult { ::_exit(0); });
  EXPECT_EQ(all.kind, FailureKind::error);
  EXPECT_THAT(all.message, HasSubstr("status 0"));
  const RankResult one = launch(2, [](int rank) -> RankResult {
    if (rank == 1) ::_exit(0);
    return {FailureKind::peer_lost, "lost"};
  });
  EXPECT_THAT(one.message, AllOf(HasSubstr("rank 1"), HasSubstr("status 0")));
}

// A program that a rank starts inherits its pipe to the launcher. This one outlives the launch.
TEST(LauncherTest, AProgramThatOutlivesItsRankHidesNoEnd) {
  int life[2];
  ASSERT_EQ(::pipe(life), 0);
  for (const FailureKind kind : {FailureKind::none, FailureKind::error}) {
    const RankResult result = launch(2, [&](int rank) -> RankResult {
      if (rank == 0 && ::fork() == 0) {
        ::alarm(30);
        ::close(life[1]);
        char end = 0;
        while (::read(life[0], &end, 1) > 0) {
        }
        ::_exit(0);
      }
      if (rank == 1 && kind == FailureKind::error) hang();
      return {kind, "cause"};
    });
    EXPECT_EQ(result.kind, kind) << result.message;
  }
  ::close(life[0]);
  ::close(life[1]);
}

}  // namespace
}  // namespace dsat::trainer
