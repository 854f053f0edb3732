// Slots where a trial failed wait while it runs elsewhere, and no longer: over an engine whose trials end by hand.
#include <gmock/gmock.h>

#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  void hold(const std::vector<Slot>& slots) override { pool_.hold(slots); }
  void launch(const Launch&) override {}
  void stop(uint64_t, bool) override {}
  bool slots_name_hosts() const override { return names_hosts; }

  bool names_hosts = true;

 private:
  SlotPool pool_;
};

class RunElsewhere : public RunnerTest {
 protected:
  RunElsewhere() { use_slots(2); }
  void use_slots(int slots) {
    const Argv command{"/bin/true", "--deepspeed_config", "user.json"};
    TrialRunnerOptions options{{}, {}, {}, dir() / "run", CommandTemplate({command, {}, {}, dir(), environment_})};
    options.cwd = dir();
    options.environment = environment_;
    for (int slot = 0; slot < slots; ++slot) options.slots.slots.push_back({std::to_string(slot), slot, {}});
    auto engine = std::make_unique<ManualEngine>(options.slots.slots);
    engine_ = engine.get();
    runner_ = std::make_unique<TrialRunner>(loop_, std::move(options), std::move(engine));
    runner_->on_ended = [this](const TrialEnd& end) { ends_[end.id] = end; };
    runner_->on_notice = [this](const std::string& notice) { notices_.push_back(notice); };
  }
  void fail(uint64_t id, const std::string& abandoned = "") {
    runner_->start(spec(id));
    EngineEnd end;
    end.exit.code = 1;
    end.abandoned = abandoned;
    engine_->on_ended(id, end);
    ASSERT_EQ(ends_.at(id).outcome, Outcome::failed);
  }

  void complete(uint64_t id) {
    runner_->start(spec(id));
    write_text(trial_dir(id) / kMetricsFile, R"({"latency": 1000, "throughput": 8000})");
    engine_->on_ended(id, EngineEnd());
    ASSERT_EQ(ends_.at(id).outcome, Outcome::completed) << ends_.at(id).reason;
  }

  ManualEngine* engine_ = nullptr;
  std::vector<std::string> notices_;
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

// A process that cannot be ended may keep its slot for ever: then the other one is the last.
TEST_F(RunElsewhere, NoSlotWaitsThatIsTheLast) {
  fail(0);
  runner_->run_elsewhere(0);
  fail(1, "process 7 cannot be ended");
  EXPECT_EQ(room(), 1) << "slot 0 is back, slot 1 is held";
  fail(0);
  runner_->run_elsewhere(0);
  EXPECT_EQ(room(), 1);
}

TEST_F(RunElsewhere, SlotsWaitAgainOnceTheProcessesAreGone) {
  fail(1, "process 7 cannot be ended");
  engine_->give_back({{"0", 0, {}}});
  fail(0);
  runner_->run_elsewhere(0);
  EXPECT_EQ(room(), 1);
}

TEST_F(RunElsewhere, ASlotWhoseHostFailsThreeTrialsGetsNoMore) {
  for (const uint64_t id : {0, 1, 2}) {
    runner_->start(spec(id));
    EngineEnd end;
    end.exit.code = 255;
    end.verdict = Verdict{Outcome::failed, "host alpha: no route to it", true};
    engine_->on_ended(id, end);
    ASSERT_TRUE(ends_.at(id).infrastructure);
    runner_->run_elsewhere(id);
    EXPECT_EQ(room(), 1);
    complete(id);
  }
  EXPECT_THAT(notices_, ElementsAre(AllOf(HasSubstr("slot 0 "), HasSubstr("trials 0, 1, 2 "))));
  EXPECT_EQ(room(), 1);
}

TEST_F(RunElsewhere, APortThatIsTakenShowsNothingOfTheSlot) {
  runner_->start(spec(0));
  write_text(trial_dir(0) / kStderrFile, "RuntimeError: EADDRINUSE: address already in use\n");
  EngineEnd end;
  end.exit.code = 1;
  engine_->on_ended(0, end);
  ASSERT_TRUE(ends_.at(0).infrastructure) << ends_.at(0).reason;
  runner_->run_elsewhere(0);
  EXPECT_EQ(room(), 2);
}

// Where a scheduler places trials, nothing says that two of them are on one host.
TEST_F(RunElsewhere, OnlyTrialsOfOneHostMeetAtAPort) {
  const auto meet = [&](uint64_t id) {
    runner_->start(spec(id));
    runner_->start(spec(id + 1));
    write_text(trial_dir(id + 1) / kStderrFile,
               "The server socket has failed to bind to [::]:29500: Address already in use\n");
    EngineEnd end;
    end.exit.code = 1;
    engine_->on_ended(id + 1, end);
    ASSERT_EQ(ends_.at(id + 1).taken_port, TakenPort::chosen) << ends_.at(id + 1).reason;
  };
  engine_->names_hosts = false;
  meet(0);
  EXPECT_EQ(room(), 1);
  engine_->on_ended(0, EngineEnd());
  engine_->names_hosts = true;
  meet(2);
  EXPECT_EQ(room(), 0);
}

// With three slots one may wait although processes hold another.
TEST_F(RunElsewhere, HeldSlotsGiveNothingBackThatAnotherCanDo) {
  use_slots(3);
  for (const uint64_t id : {0, 1, 2}) {  // fails on slot 0, and completes elsewhere
    fail(id);
    runner_->run_elsewhere(id);
    complete(id);
  }
  EXPECT_THAT(notices_, ElementsAre(AllOf(HasSubstr("slot 0 "), HasSubstr("trials 0, 1, 2 "))));
  EXPECT_EQ(room(), 2);
  fail(3, "process 7 cannot be ended");
  EXPECT_EQ(room(), 1) << "slot 2";
  fail(4, "process 8 cannot be ended");
  EXPECT_EQ(room(), 1) << "slot 0, since there is no other";
  EXPECT_EQ(notices_.size(), 1u);
  complete(5);
  complete(6);
  ASSERT_EQ(notices_.size(), 2u) << "once";
  EXPECT_THAT(notices_[1], AllOf(HasSubstr("used again"), HasSubstr("place: 0")));
}

}  // namespace
}  // namespace dsat::host
