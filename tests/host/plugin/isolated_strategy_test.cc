// A strategy in a process of its own: the same answers, and what happens when the process is lost.
#include "plugin/isolated_strategy.h"

#include "host/runner/support.h"
#include "host/study/study_fixture.h"
#include "plugin/plugin_strategy.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

// Grants everything; an event that is handed over again begins where it began.
class Grants : public RequestAnswers {
 public:
  std::optional<uint64_t> create_trial(const Op&) override { return next_++; }
  uint64_t next_id() const override { return next_; }
  void begin_again() override { next_ = at_begin_; }
  void begin() { at_begin_ = next_; }

 private:
  uint64_t next_ = 0, at_begin_ = 0;
};

class IsolatedStrategyTest : public StudyTest {
 protected:
  IsolatedStrategyTest() {
    apart_.isolation = Isolation::process;
    apart_.plugin_host = DSAT_PLUGIN_HOST;
  }
  PluginInfo plugin(const std::string& name) {
    return find_strategy(fixture_plugin(name).string(), PluginKind::searcher, apart_).value();
  }
  std::unique_ptr<Strategy> open(const std::string& name, const Json& options) { return create(plugin(name), options); }
  std::unique_ptr<Strategy> create(const PluginInfo& info, const Json& options) {
    restarts_ = 0;
    return IsolatedStrategy::create(info, options, 42, apart_, [this](int, std::string_view line) {
      log_.emplace_back(line);
      restarts_ += line.find("; restart ") != std::string_view::npos ? 1 : 0;
      if (restarts_ > 2 * kMostRestarts) throw Error(DSAT_INTERNAL, "it is started for ever");
    });
  }
  // What ends a study whose plugin's process asks so often for this trial in one event.
  std::string refusal_of(int times, const Json& request) {
    const PluginInfo info = plugin("scripted");
    apart_.plugin_host = DSAT_FORGED_PLUGIN_HOST;
    const auto strategy = create(info, {{"times", times}, {"request", request}});
    return error_of([&] { handle(*strategy, StrategyEvent::Kind::start); }, DSAT_INTERNAL);
  }
  std::unique_ptr<Strategy> defective(const std::string& defect) {
    return open("defective", {{"defect", defect}, {"marker", (dir() / "marker").string()}});
  }
  StrategyEvent event(StrategyEvent::Kind kind, uint64_t trial) const {
    StrategyEvent event;
    event.kind = kind;
    event.trial = trial;
    event.study = study_;
    event.metrics = {{"throughput", 7.0}};
    return event;
  }
  std::string handle(Strategy& strategy, StrategyEvent::Kind kind, uint64_t trial = 0) {
    answers_.begin();
    return to_json(strategy.handle(event(kind, trial), answers_)).dump();
  }
  // Until the second result, where defects show.
  std::string up_to_the_defect(Strategy& strategy) {
    handle(strategy, StrategyEvent::Kind::start);
    handle(strategy, StrategyEvent::Kind::result, 0);
    handle(strategy, StrategyEvent::Kind::exited, 0);
    return handle(strategy, StrategyEvent::Kind::result, 1);
  }

  PluginProcesses apart_;
  const Json study_ = description_for_search(plan_of(scripted(Json::object())));
  Grants answers_;
  std::vector<std::string> log_;
  int restarts_ = 0;
};

TEST_F(IsolatedStrategyTest, ALibraryIsDescribedWithoutBeingLoadedHere) {
  const PluginInfo here =
      find_strategy(fixture_plugin("scripted").string(), PluginKind::searcher, in_this_process()).value();
  const PluginInfo there = plugin("scripted");
  EXPECT_EQ(there.library, nullptr);
  EXPECT_EQ(there.id, here.id);
  EXPECT_EQ(there.options, here.options);
  EXPECT_EQ(there.state_version, here.state_version);
  const auto dead = describe_plugin(fixture_plugin("dies_when_loaded"), apart_);
  ASSERT_FALSE(dead.ok());
  EXPECT_THAT(dead.status().message(), AllOf(HasSubstr("signal 6"), HasSubstr("'no table of layers'")));
}

TEST_F(IsolatedStrategyTest, OpsAndRefusalsAreThoseOfTheSameProcess) {
  const Json script{{"start", {try_micro_batch(2), {{"log", "a line"}}, {{"raw", "no JSON"}}}},
                    {"result 0", {try_micro_batch(3), {{"stop", 0}}, {{"finish", "done"}, {"best", 0}}}}};
  const auto strategy = open("scripted", {{"script", script.dump()}});
  EXPECT_EQ(handle(*strategy, StrategyEvent::Kind::start).find("\"trial\":0") != std::string::npos, true);
  EXPECT_THAT(log_, ::testing::Contains("a line"));
  EXPECT_THAT(handle(*strategy, StrategyEvent::Kind::result), HasSubstr("\"reason\":\"done\""));
}

TEST_F(IsolatedStrategyTest, WhatThePluginSaysOfItsFailureComesThrough) {
  const auto strategy = defective("fails");
  EXPECT_THAT(error_of([&] { up_to_the_defect(*strategy); }, DSAT_INTERNAL),
              HasSubstr("plugin defective: on_result: the moon is wrong"));
}

TEST_F(IsolatedStrategyTest, AProcessThatIsLostOnceIsReplacedAndGoesOn) {
  for (const char* defect : {"segv_once", "exit0_once"}) {
    std::filesystem::remove(dir() / "marker");
    answers_ = Grants();
    log_.clear();
    const auto strategy = defective(defect);
    EXPECT_EQ(up_to_the_defect(*strategy), "[]");
    EXPECT_THAT(handle(*strategy, StrategyEvent::Kind::exited, 1), HasSubstr("\"trial\":2")) << defect;
    EXPECT_THAT(log_, ::testing::Contains(HasSubstr("1 of 3")));
  }
}

TEST_F(IsolatedStrategyTest, AProcessThatIsLostEveryTimeEndsWithPluginAndCall) {
  const auto strategy = defective("exit3");
  EXPECT_THAT(error_of([&] { up_to_the_defect(*strategy); }, DSAT_INTERNAL),
              AllOf(HasSubstr("plugin defective: "), HasSubstr("on_result of trial 1"), HasSubstr("exit status 3"),
                    HasSubstr("restarted 3 times")));
}

TEST_F(IsolatedStrategyTest, ATrialThatMakesNoSenseIsAskedForInVain) {
  for (const Json& change :
       {Json{{"parent", 999}}, Json{{"overrides", "no object"}}, Json{{"op", "finish"}, {"reason", "done"}}}) {
    Json request{{"op", "create_trial"}, {"overrides", Json::object()}};
    request.update(change);
    apart_.plugin_host = DSAT_PLUGIN_HOST;
    EXPECT_THAT(refusal_of(1, request), AllOf(HasSubstr("a trial"), HasSubstr("makes no sense"))) << request;
  }
}

TEST_F(IsolatedStrategyTest, TooManyTrialsOfOneEventAreAskedForInVain) {
  const Json request{{"op", "create_trial"}, {"overrides", Json::object()}};
  EXPECT_THAT(refusal_of(kMaxOpsPerEvent + 1, request), HasSubstr("too many trials"));
}

// The child holds the connection and would do so for ever.
TEST_F(IsolatedStrategyTest, AProcessIsLostAlsoWhereAChildOfItLivesOn) {
  const auto strategy = defective("orphan");
  EXPECT_THAT(error_of([&] { up_to_the_defect(*strategy); }, DSAT_INTERNAL), HasSubstr("exit status 3"));
}

TEST_F(IsolatedStrategyTest, WhatIsLeftOutOfTheLogIsReported) {
  const auto strategy = defective("log_flood");
  up_to_the_defect(*strategy);
  ASSERT_EQ(log_.size(), kMaxLogLines + 1);
  EXPECT_THAT(log_.back(), HasSubstr("left out"));
}

TEST_F(IsolatedStrategyTest, AProcessThatDoesNotAnswerIsEnded) {
  apart_.plugin_timeout = std::chrono::milliseconds(1500);
  const auto strategy = defective("sleep_once");
  EXPECT_EQ(up_to_the_defect(*strategy), "[]");
  EXPECT_THAT(log_, ::testing::Contains(HasSubstr("for 1.5 s")));
}

TEST_F(IsolatedStrategyTest, OneThatDecidesOtherwiseWhenItsEventsAreReplayedEndsTheStudy) {
  const auto strategy = defective("random_start");
  handle(*strategy, StrategyEvent::Kind::start);
  ASSERT_EQ(children_of(getpid()).size(), 1u);
  kill(children_of(getpid())[0], SIGKILL);
  EXPECT_THAT(error_of([&] { handle(*strategy, StrategyEvent::Kind::result, 0); }, DSAT_INTERNAL),
              HasSubstr("not deterministic"));
}

TEST_F(IsolatedStrategyTest, ThePluginIsDestroyedBeforeItsProcessEnds) {
  auto strategy = defective("print_flood_destroy");
  handle(*strategy, StrategyEvent::Kind::start);
  EXPECT_THAT(log_, ::testing::IsEmpty());
  strategy.reset();
  EXPECT_THAT(log_, ::testing::Contains("defective printed: printed"));
}

TEST_F(IsolatedStrategyTest, HowAPluginFailsToBeDestroyedIsAWarning) {
  const std::pair<const char*, const char*> ways[] = {
      {"segv_destroy", "plugin defective: destroy: its process was killed by signal 11"},
      {"exit3_destroy", "plugin defective: destroy: its process ended with exit status 3"},
      {"loop_destroy", "plugin defective: destroy: its process had not ended after 1 s and was killed"}};
  for (auto [defect, line] : ways) {
    log_.clear();
    auto strategy = defective(defect);
    handle(*strategy, StrategyEvent::Kind::start);
    strategy.reset();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // it reports the crash and exits
    line = "plugin defective: destroy: its process ";
#endif
    EXPECT_THAT(log_, ::testing::Contains(HasSubstr(line)));
  }
}

// Nobody reads what it logs then, and that does not cut it off.
TEST_F(IsolatedStrategyTest, APluginThatLogsAsItIsDestroyedIsDestroyedToTheEnd) {
  auto strategy = defective("log_and_print_destroy");
  handle(*strategy, StrategyEvent::Kind::start);
  strategy.reset();
  EXPECT_THAT(log_, ::testing::Contains("defective printed: to the end"));
}

TEST_F(IsolatedStrategyTest, ProcessesThatThePluginStartedEndWithIt) {
  auto strategy = defective("children");
  up_to_the_defect(*strategy);
  const auto plugin = children_of(getpid());
  ASSERT_EQ(plugin.size(), 1u);
  const auto left = children_of(plugin[0]);
  ASSERT_EQ(left.size(), 1u);
  strategy.reset();
  Loop loop;
  look_until(loop, [&] { return !is_alive(left[0]); });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their own memory would count as the plugin's
TEST_F(IsolatedStrategyTest, ItsMemoryIsLimited) {
  const auto strategy = defective("none");
  ASSERT_EQ(children_of(getpid()).size(), 1u);
  const std::string limits = read_text(fs::path("/proc") / std::to_string(children_of(getpid())[0]) / "limits");
  EXPECT_THAT(limits, HasSubstr(std::to_string(kPluginMemoryBytes)));
}
#endif

TEST_F(IsolatedStrategyTest, AStateIsSavedAndRestored) {
  const auto strategy = open("scripted_unsound", {{"script", "{}"}});
  ASSERT_TRUE(strategy->can_save());
  handle(*strategy, StrategyEvent::Kind::start);
  EXPECT_EQ(strategy->save(), "a state that nobody understands");
  EXPECT_THAT(error_of(
                  [&] {
                    open("scripted_unsound", {{"script", "{}"}})->restore(study_, "what");
                  },
                  DSAT_INTERNAL),
              HasSubstr("this state makes no sense"));
}

TEST_F(IsolatedStrategyTest, AStateThatIsRefusedWhenTheProcessIsLostLeavesAResume) {
  const auto strategy = open("scripted_unsound", {{"script", "{}"}});
  handle(*strategy, StrategyEvent::Kind::start);
  strategy->save();
  kill(children_of(getpid())[0], SIGKILL);
  EXPECT_THAT(error_of([&] { handle(*strategy, StrategyEvent::Kind::result, 0); }, DSAT_INTERNAL),
              AllOf(HasSubstr("this state makes no sense"), HasSubstr("dsat-host resume")));
}

TEST_F(IsolatedStrategyTest, WithoutTheProgramTheMessageSaysWhatToDo) {
  apart_.plugin_host = "/nonexistent/dsat-plugin-host";
  const auto found = describe_plugin(fixture_plugin("scripted"), apart_);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.status().message(), HasSubstr("no such file"));
  write_text(apart_.plugin_host = dir() / "dsat-plugin-host", "without the right to run");
  EXPECT_THAT(describe_plugin(fixture_plugin("scripted"), apart_).status().message(),
              AllOf(HasSubstr(apart_.plugin_host.string()), HasSubstr("may not be run")));
}

TEST_F(IsolatedStrategyTest, APluginBuiltWithTheFirstHeaderLoads) { EXPECT_EQ(plugin("first_header").abi_minor, 0u); }

}  // namespace
}  // namespace dsat::host
