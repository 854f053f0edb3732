// When a training is judged dead, and when it is left alone.
// Times are numbers of the test: nothing is waited for.
#include "watch/rank_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace dsat::trainer {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RankWatchTest : public ::testing::Test {
 protected:
  RankWatchTest() {
    for (int rank = 0; rank < 2; ++rank) watch_.started(rank, now_);
  }

  // Beats for `time` as the ranks do, each using so much of the processor a second.
  std::optional<std::string> pass(seconds time, int64_t cpu_us_0, int64_t cpu_us_1, bool one_is_silent = false) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += kBeatInterval;
      beats_[0].cpu_us += cpu_us_0 / 2;
      beats_[1].cpu_us += cpu_us_1 / 2;
      watch_.receive(0, beats_[0], now_);
      if (!one_is_silent) watch_.receive(1, beats_[1], now_);
      if (auto wrong = watch_.verdict(now_)) return wrong;
    }
    return std::nullopt;
  }

  RankWatch watch_;
  RankWatch::Clock::time_point now_ = RankWatch::Clock::now();
  Beat beats_[2];
};

TEST_F(RankWatchTest, AHourOfSlowWorkIsLeftAlone) {
  EXPECT_EQ(pass(seconds(3600), 0, 30000), std::nullopt);  // rank 0 waits for rank 1
}

TEST_F(RankWatchTest, TheRanksThatWaitForNobodyAreTheOnesToWaitFor) {
  beats_[0].waiting_in = "the sum of b";
  pass(seconds(1), 0, 900000);
  EXPECT_EQ(watch_.computing(), std::vector<int>{1});
  beats_[1].waiting_in = "the sum of b";
  pass(seconds(1), 0, 900000);
  EXPECT_EQ(watch_.computing(), (std::vector<int>{0, 1}));
}

TEST_F(RankWatchTest, ARankThatIsSilentIsNamed) {
  pass(seconds(20), 900000, 900000);
  const auto begin = now_;
  EXPECT_THAT(pass(seconds(30), 900000, 0, true).value_or(""), AllOf(HasSubstr("rank 1"), HasSubstr("no sign")));
  EXPECT_LT(now_ - begin, seconds(8));
}

TEST_F(RankWatchTest, RanksOfWhichNoneMovesAreNamedWithWhatTheyAreIn) {
  pass(seconds(20), 900000, 900000);
  beats_[0].waiting_in = "the gathering of a";
  beats_[1].waiting_in = "the sum of b";
  const auto begin = now_;
  const std::string wrong = pass(seconds(30), 200, 200).value_or("");
  EXPECT_THAT(wrong, HasSubstr("rank 0 is in the gathering of a, rank 1 is in the sum of b"));
  EXPECT_LT(now_ - begin, seconds(10));
}

// It may wait for its data.
TEST_F(RankWatchTest, ARankOutsideTheEngineIsGivenLonger) {
  pass(seconds(20), 900000, 900000);
  beats_[0].waiting_in = "the gathering of a";
  EXPECT_EQ(pass(seconds(50), 200, 200), std::nullopt);
  EXPECT_THAT(pass(seconds(20), 200, 200).value_or(""),
              AllOf(HasSubstr("the gathering of a"), HasSubstr("rank 1 is in nothing")));
}

TEST_F(RankWatchTest, ARankThatWaitsForAChildProcessIsLeftAlone) {
  beats_[0].waiting_in = "the gathering of a";
  beats_[1].has_child = true;
  EXPECT_EQ(pass(seconds(3600), 200, 200), std::nullopt);
  beats_[1].has_child = false;
  EXPECT_EQ(pass(seconds(50), 200, 200), std::nullopt) << "the time begins anew";
  EXPECT_NE(pass(seconds(20), 200, 200), std::nullopt);
}

// Who is in the engine does not wait for its child.
TEST_F(RankWatchTest, AChildProcessExcusesNoRankInTheEngine) {
  beats_[0].waiting_in = beats_[1].waiting_in = "the sum of b";
  beats_[0].has_child = beats_[1].has_child = true;
  EXPECT_NE(pass(seconds(30), 200, 200), std::nullopt);
}

TEST_F(RankWatchTest, ASlowNetworkIsMotion) {
  for (int i = 0; i < 60; ++i) {
    beats_[1].io_bytes += 4000;
    EXPECT_EQ(pass(seconds(1), 100, 100), std::nullopt);
  }
}

TEST_F(RankWatchTest, APauseOfTheWholeProgramIsForgiven) {
  pass(seconds(5), 900000, 900000);
  now_ += seconds(3600);
  EXPECT_EQ(watch_.verdict(now_), std::nullopt);
  EXPECT_EQ(pass(seconds(5), 900000, 900000), std::nullopt);
}

TEST_F(RankWatchTest, ARankThatHasEndedIsNotMissed) {
  watch_.ended(1);
  EXPECT_EQ(pass(seconds(60), 900000, 0, true), std::nullopt);
}

TEST(BeatTest, IsReadBackAsItWasWritten) {
  Beat beat;
  beat.cpu_us = 12;
  beat.io_bytes = 345;
  beat.has_child = true;
  beat.waiting_in = "the sum of gradient bucket 3";
  const Beat read = parse_beat(to_line(beat)).value();
  EXPECT_EQ(read.cpu_us, 12);
  EXPECT_EQ(read.io_bytes, 345);
  EXPECT_TRUE(read.has_child);
  EXPECT_EQ(read.waiting_in, beat.waiting_in);
  EXPECT_EQ(parse_beat("mOutOfMemoryError: 12"), std::nullopt);
  EXPECT_EQ(parse_beat(""), std::nullopt);
}

TEST(BeatTest, AChildCountsAsLongAsItRuns) {
  EXPECT_FALSE(current_beat().has_child);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_TRUE(current_beat().has_child);
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(current_beat().has_child);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child) << "its end is left to who waits for it";
}

// Through memory that ranks share nothing is read or written as far as the system knows.
TEST(BeatTest, WhatRanksExchangeIsMovement) {
  constexpr int64_t kMuch = int64_t{1} << 40;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto next_beat = [&] {
    char line[600];
    const ssize_t size = ::read(ends[0], line, sizeof line);
    return parse_beat(std::string(line, static_cast<size_t>(std::max<ssize_t>(size, 1) - 1))).value();
  };
  {
    const Heartbeat heartbeat(ends[1]);
    const Beat before = next_beat();
    count_exchanged(kMuch);
    EXPECT_GE(next_beat().io_bytes - before.io_bytes, kMuch);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace dsat::trainer
