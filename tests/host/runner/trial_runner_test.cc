// What the runner asks of an engine, whatever that is: here one whose trials do as the test says.
#include "runner/trial_runner.h"

#include <gmock/gmock.h>

#include "host/runner/runner_fixture.h"
#include "runner/trial_script.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;

class ObedientEngine : public Engine {
 public:
  bool has_room_for(const std::vector<TrialShape>&) const override { return true; }
  std::optional<std::vector<Slot>> take(const TrialShape&) override { return std::vector<Slot>{{"0", 0, {}}}; }
  void give_back(const std::vector<Slot>&) override {}
  void launch(const Launch&) override {}
  bool adopt(const Launch&) override { return true; }
  void stop(uint64_t, bool at_once) override { stops.push_back(at_once ? "kill" : "term"); }

  std::vector<std::string> stops;
};

class TrialRunnerTest : public RunnerTest {
 protected:
  TrialRunnerTest() { make_runner(); }

  void make_runner() {
    const Argv argv{"true", "--deepspeed_config", "user.json"};
    TrialRunnerOptions options{{}, {}, {}, dir() / "run", CommandTemplate({argv, {}, {}, dir(), environment_})};
    options.cwd = dir();
    options.environment = environment_;
    options.term_grace = std::chrono::milliseconds(20);
    auto engine = std::make_unique<ObedientEngine>();
    engine_ = engine.get();
    runner_ = std::make_unique<TrialRunner>(loop_, std::move(options), std::move(engine));
    runner_->on_started = [this](const TrialStart& start) { starts_.push_back(start); };
  }

  ObedientEngine* engine_;
};

// A turn may start several trials, fail at one of them, and stop the others before any is known to run.
TEST_F(TrialRunnerTest, ATrialThatIsStoppedBeforeItBeginsIsKilledAfterItsGrace) {
  for (const bool waits : {false, true}) {
    engine_->stops.clear();
    runner_->start(spec(waits));
    runner_->stop(waits, false);
    waits ? engine_->on_waiting(waits) : engine_->on_running(waits);
    run_until(loop_, [&] { return engine_->stops.size() == 2; });
    EXPECT_THAT(engine_->stops, ElementsAre("term", "kill"));
  }
}

// Its hours before the host died are hours of the study.
TEST_F(TrialRunnerTest, AnAdoptedTrialBeganWhenItsScriptSaysSo) {
  runner_->start(spec(0));
  write_text(trial_dir(0) / kStartedFile,
             R"({"attempt": 1, "job": "7", "step": "", "host": "a", "pid": 1, "time": "2026-01-01T00:00:00.000000Z"})");
  make_runner();
  ASSERT_TRUE(runner_->adopt(spec(0)));
  engine_->on_running(0);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].started_at, "2026-01-01T00:00:00.000000Z");
}

}  // namespace
}  // namespace dsat::host
