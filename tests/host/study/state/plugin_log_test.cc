// Lines on their way from plugins to an observer: written in any thread, forwarded in one, dropped while muted.
#include "study/state/plugin_log.h"

#include <thread>

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Severity = Observer::Severity;

class PluginLogTest : public ::testing::Test {
 protected:
  Loop loop_;
  PluginLog log_{loop_};
  StudyLog observer_;
};

TEST_F(PluginLogTest, SeveritiesAreThoseOfTheInterfaceAndOthersTheNearest) {
  for (const int severity : {-7, 0, 1, 2, 3, 99}) log_.write(severity, "line");
  log_.forward(observer_);
  EXPECT_THAT(observer_.logs, ElementsAre(Pair(Severity::debug, "line"), Pair(Severity::debug, "line"),
                                          Pair(Severity::info, "line"), Pair(Severity::warning, "line"),
                                          Pair(Severity::error, "line"), Pair(Severity::error, "line")));
}

TEST_F(PluginLogTest, ALineIsForwardedOnce) {
  log_.write(1, "once");
  log_.forward(observer_);
  log_.forward(observer_);
  EXPECT_EQ(observer_.logs.size(), 1u);
}

TEST_F(PluginLogTest, ALineOfAnotherThreadWakesTheLoop) {
  loop_.on_wake([&] { log_.forward(observer_); });
  std::thread plugin([&] { log_.write(2, "from elsewhere"); });
  while (observer_.logs.empty()) loop_.run_once();
  plugin.join();
  EXPECT_THAT(observer_.logs, ElementsAre(Pair(Severity::warning, "from elsewhere")));
}

TEST_F(PluginLogTest, WhatIsWrittenWhileItIsMutedIsDropped) {
  log_.write(1, "before");
  {
    const PluginLog::Muted muted(log_);
    log_.write(1, "of a replay");
  }
  EXPECT_THAT(observer_.logs, IsEmpty());
  log_.write(1, "after");
  log_.forward(observer_);
  EXPECT_THAT(observer_.logs, ElementsAre(Pair(Severity::info, "before"), Pair(Severity::info, "after")));
}

}  // namespace
}  // namespace dsat::host
