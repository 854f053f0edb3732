// Timers, descriptors and wakes of the loop, in real and in simulated time. Pipes stand for processes.
#include "base/event_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/clock.h"

namespace dsat::host {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  void put() { EXPECT_EQ(write(ends[1], "x", 1), 1); }
  int ends[2] = {-1, -1};
};

TEST(Loop, RunsTimersInTheOrderOfTheirTimes) {
  Loop loop;
  std::vector<int> order;
  const auto now = Loop::Clock::now();
  loop.at(now + milliseconds(2), [&] { order.push_back(2); });
  loop.at(now, [&] { order.push_back(0); });
  loop.at(now + milliseconds(1), [&] { order.push_back(1); });
  while (order.size() < 3) loop.run_once();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(Loop, ACancelledTimerStaysSilentAlsoWhenItIsDue) {
  Loop loop;
  int calls = 0;
  const auto now = Loop::Clock::now();
  uint64_t second = 0;
  loop.at(now, [&] { loop.cancel(second); });
  second = loop.at(now, [&] { ++calls; });
  loop.cancel(12345);  // nobody's
  loop.run_once();
  EXPECT_EQ(calls, 0);
}

TEST(Loop, ATimerThatSetsItselfAgainDoesNotStarveDescriptors) {
  Loop loop;
  Pipe pipe;
  pipe.put();
  bool readable = false;
  loop.watch(pipe.ends[0], [&] { readable = true; });
  std::function<void()> again = [&] { loop.at(Loop::Clock::now(), again); };
  again();
  for (int i = 0; i < 3 && !readable; ++i) loop.run_once();
  EXPECT_TRUE(readable);
}

TEST(Loop, TellsOfDataAndOfTheOtherEndClosing) {
  Loop loop;
  Pipe pipe;
  int calls = 0;
  loop.watch(pipe.ends[0], [&] {
    char c = 0;
    ++calls;
    if (read(pipe.ends[0], &c, 1) == 0) loop.unwatch(pipe.ends[0]);
  });
  pipe.put();
  loop.run_once();
  EXPECT_EQ(calls, 1);
  close(pipe.ends[1]);
  pipe.ends[1] = -1;
  loop.run_once();
  EXPECT_EQ(calls, 2);
}

TEST(Loop, ACallbackMayUnwatchItselfAndOthers) {
  Loop loop;
  Pipe a, b;
  a.put();
  b.put();
  int calls = 0;
  const auto once = [&] {
    ++calls;
    loop.unwatch(a.ends[0]);
    loop.unwatch(b.ends[0]);
  };
  loop.watch(a.ends[0], once);
  loop.watch(b.ends[0], once);
  loop.run_once();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, AnEventIsNotGivenToANewFileWithAnOldNumber) {
  Loop loop;
  Pipe a, b;
  a.put();
  b.put();
  bool misled = false;
  const int later = std::max(a.ends[0], b.ends[0]), sooner = std::min(a.ends[0], b.ends[0]);
  loop.watch(later, [] {});
  loop.watch(sooner, [&] {
    loop.unwatch(later);
    loop.watch(later, [&] { misled = true; });
    loop.unwatch(sooner);
  });
  loop.run_once();
  EXPECT_FALSE(misled);
}

TEST(Loop, DoesNotMistakeADescriptorThatAWakeReplacedForTheOldOne) {
  Loop loop;
  Pipe pipe;
  pipe.put();
  bool misled = false;
  loop.watch(pipe.ends[0], [] {});
  loop.on_wake([&] {
    loop.unwatch(pipe.ends[0]);
    loop.watch(pipe.ends[0], [&] { misled = true; });
  });
  loop.wake();
  loop.run_once();
  EXPECT_FALSE(misled);
}

TEST(Loop, WakesFromAnotherThreadOnceForManyCalls) {
  Loop loop;
  int wakes = 0;
  loop.on_wake([&] { ++wakes; });
  std::thread other([&] {
    for (int i = 0; i < 5; ++i) loop.wake();
  });
  other.join();
  loop.run_once();
  EXPECT_EQ(wakes, 1);
}

TEST(Loop, SimulatedTimeJumpsToTheNextTimerAndWaitsForNothing) {
  Loop loop(Loop::Time::simulated);
  EXPECT_EQ(loop.utc_now(), "2000-01-01T00:00:00.000000Z");
  std::vector<std::string> calls;
  loop.at(loop.now() + std::chrono::hours(48), [&] { calls.push_back(loop.utc_now()); });
  loop.at(loop.now() + milliseconds(1), [&] { loop.at(loop.now(), [&] { calls.push_back(loop.utc_now()); }); });
  while (calls.size() < 2) loop.run_once();
  EXPECT_EQ(calls, (std::vector<std::string>{"2000-01-01T00:00:00.001000Z", "2000-01-03T00:00:00.000000Z"}));
}

TEST(Loop, ASimulationGoesOnFromALaterTime) {
  const auto at = [](const char* text) { return *parse_rfc3339(text); };
  Loop loop(Loop::Time::simulated);
  loop.go_on_from(at("2000-01-02T03:04:05.000000Z"));
  EXPECT_EQ(loop.utc_now(), "2000-01-02T03:04:05.000000Z");
  loop.go_on_from(at("2000-01-01T00:00:00.000000Z"));
  EXPECT_EQ(loop.utc_now(), "2000-01-02T03:04:05.000000Z") << "never back";
  Loop real;
  const auto before = real.now();
  real.go_on_from(at("2100-01-01T00:00:00.000000Z"));
  EXPECT_LT(real.now() - before, std::chrono::hours(1));
}

TEST(Loop, AWakeComesBeforeSimulatedTimeGoesOn) {
  Loop loop(Loop::Time::simulated);
  std::vector<std::string> calls;
  loop.on_wake([&] { calls.push_back("wake"); });
  loop.at(loop.now() + milliseconds(1), [&] { calls.push_back("timer"); });
  loop.wake();
  while (calls.size() < 2) loop.run_once();
  EXPECT_EQ(calls, (std::vector<std::string>{"wake", "timer"}));
}

}  // namespace
}  // namespace dsat::host
