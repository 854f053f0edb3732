// Slots where a trial failed wait while it runs elsewhere, and no longer: over an engine whose trials end by hand.
#include <gtest/gtest.h>

#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

class ManualEngine : public Engine {
 public:
  explicit ManualEngine(std::vector<Slot> slots) : pool_(std::move(slots), std::nullopt) {}

  bool has_room_for(const std::vector<TrialShape>& shapes) const override {
    SlotPool pool = pool_;
    return std::all_of(shapes.begin(), shapes.end(), [&](const TrialShape& shape) { return pool.take(shape); });
  }
  std::optional<std::vector<Slot>> take(const TrialShape& shape) override { return pool_.take(shape); }
  void give_back(const std::vector<Slot>& slots) override { pool_.give_back(slots); }
  bool withhold(const std::vector<Slot>& slots, const std::vector<TrialShape>& shapes) override {
    return pool_.withhold(slots, shapes);
  }
  void restore(const std::vector<Slot>& slots) override { pool_.restore(slots); }
  void restore_all() override { pool_.restore_all(); }
  void launch(const Launch&) override {}
  void stop(uint64_t, bool) override {}

 private:
  SlotPool pool_;
};

class RunElsewhere : public RunnerTest {
 protected:
  RunElsewhere() {
    const Argv command{"/bin/true", "--deepspeed_config", "user.json"};
    TrialRunnerOptions options{{}, {}, {}, dir() / "run", CommandTemplate({command, {}, {}, dir(), environment_})};
    options.cwd = dir();
    options.environment = environment_;
    options.slots.slots = {{"0", 0, {}}, {"1", 1, {}}};
    auto engine = std::make_unique<ManualEngine>(options.slots.slots);
    engine_ = engine.get();
    runner_ = std::make_unique<TrialRunner>(loop_, std::move(options), std::move(engine));
    runner_->on_ended = [this](const TrialEnd& end) { ends_[end.id] = end; };
  }
  void fail(uint64_t id, const std::string& abandoned = "") {
    runner_->start(spec(id));
    EngineEnd end;
    end.exit.code = 1;
    end.abandoned = abandoned;
    engine_->on_ended(id, end);
    ASSERT_EQ(ends_.at(id).outcome, Outcome::failed);
  }

  ManualEngine* engine_ = nullptr;
};

TEST_F(RunElsewhere, TheSlotWaitsUntilTheTrialHasEndedOrWillNotRun) {
  fail(0);
  EXPECT_EQ(room(), 2);
  runner_->run_elsewhere(0);
  EXPECT_EQ(room(), 1);
  fail(0);
  EXPECT_EQ(room(), 2) << "it has run elsewhere";

  runner_->run_elsewhere(0);
  EXPECT_EQ(room(), 1);
  TrialEnd stopped;
  stopped.id = 0;
  stopped.outcome = Outcome::stopped;
  runner_->will_not_run(stopped);
  EXPECT_EQ(room(), 2);
}

// A process that cannot be ended keeps its slot for ever: the other one may be the last.
TEST_F(RunElsewhere, NoSlotWaitsOnceProcessesHoldSome) {
  fail(0);
  runner_->run_elsewhere(0);
  fail(1, "process 7 cannot be ended");
  EXPECT_EQ(room(), 1) << "slot 0 is back, slot 1 is lost";
  fail(0);
  runner_->run_elsewhere(0);
  EXPECT_EQ(room(), 1);
}

}  // namespace
}  // namespace dsat::host
