// The test bench keeps the host's rules, so that a plugin that passes here behaves there.
#include "dsat/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

namespace dsat {
namespace {

using testing::Answer;
using testing::Bench;

// A searcher whose start is what a test says; it ends with its last open trial.
class Scripted : public Searcher<Scripted> {
 public:
  static Descriptor descriptor() {
    return {"test.scripted", "scripted", "1.0.0", "does what a test says", {OptionSpec::integer("n", 1, "a number")}};
  }
  Scripted(Host host, const Options&) : Searcher(host) {}
  void start(const Study&) { on_start(*this); }
  void on_result(const Result& result) { on_result_of(*this, result); }
  void on_trial_exited(const Exit& exit) { on_exit(*this, exit); }
  std::optional<TrialId> ask(int64_t micro_batch, bool repeat = false) {
    TrialRequest request;
    request.overrides["train_micro_batch_size_per_gpu"] = micro_batch;
    request.repeat = repeat;
    return create_trial(request);
  }
  using Searcher::finish;
  using Searcher::host;
  using Searcher::log;
  using Searcher::stop_trial;

  static inline std::function<void(Scripted&)> on_start;
  static inline std::function<void(Scripted&, const Result&)> on_result_of;
  static inline std::function<void(Scripted&, const Exit&)> on_exit;
};

// Asks for three trials at a time, stops the rest when one has completed, and keeps its state.
class Racer : public Searcher<Racer> {
 public:
  static Descriptor descriptor() { return {"test.racer", "racer", "1.0.0", "races micro batches", {}}; }
  Racer(Host host, const Options&) : Searcher(host) {}
  void start(const Study& study) {
    const Limits& limits = study.limits;
    log(Severity::info, "open " + std::to_string(limits.open_trials) + " of " +
                            std::to_string(limits.max_concurrent_trials) + " slots " + std::to_string(limits.slots) +
                            " " + std::to_string(limits.slots_per_trial) + " " +
                            std::to_string(limits.data_parallel_size));
    race();
  }
  void on_result(const Result& result) { won_ = result.trial(); }
  void on_trial_exited(const Exit& exit) {
    open_.erase(std::find(open_.begin(), open_.end(), exit.trial()));
    if (exit.outcome() == Outcome::completed) {
      for (const TrialId id : open_) stop_trial(id);
    }
    if (open_.empty()) race();
  }
  std::string save() const { return Json{{"open", open_}, {"next", next_}, {"won", won_}}.dump(); }
  void restore(const Study&, std::string_view state) {
    const Json json = Json::parse(state);
    open_ = json.at("open").get<std::vector<TrialId>>();
    next_ = json.at("next").get<int64_t>();
    won_ = json.at("won").get<TrialId>();
  }

 private:
  void race() {
    for (int i = 0; i < 3; ++i) {
      if (const auto id = create_trial({{{"train_micro_batch_size_per_gpu", next_++}}, ""})) open_.push_back(*id);
    }
    if (open_.empty()) finish("raced", won_);
  }
  std::vector<TrialId> open_;
  int64_t next_ = 1;
  TrialId won_ = kNoTrial;
};

Answer completed(const testing::Trial& trial) { return Answer::completed({{"x", trial.micro_batch()}}); }

class BenchTest : public ::testing::Test {
 protected:
  BenchTest() {
    Scripted::on_start = [](Scripted&) {};
    Scripted::on_result_of = [](Scripted&, const Result&) {};
    Scripted::on_exit = [](Scripted&, const Exit&) {};
    study_.metric = "throughput";
    study_.zero_stages = {1};
    study_.base_config = {{"zero_optimization", {{"stage", 1}}}};
    study_.limits.max_trials = 3;
    study_.limits.max_concurrent_trials = 2;
  }
  Bench bench(testing::AnswerFunction answer = [](const testing::Trial&) { return Answer::completed({{"x", 1}}); }) {
    return Bench(testing::factory<Scripted>(), "scripted", study_, std::move(answer));
  }
  Study study_;
};

TEST_F(BenchTest, OverridesAreMergedOverTheBaseConfiguration) {
  Scripted::on_start = [](Scripted& s) { s.ask(4); };
  auto run = bench();
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.asked()[0].config["zero_optimization"]["stage"], 1);
  EXPECT_EQ(run.asked()[0].micro_batch(), 4);
  EXPECT_EQ(run.asked()[0].stage(), 1);
}

TEST_F(BenchTest, TheTrialLimitIsResourceExhausted) {
  std::vector<bool> given;
  Scripted::on_start = [&](Scripted& s) {
    for (int i = 1; i <= 4; ++i) given.push_back(s.ask(i).has_value());
  };
  auto run = bench();
  ASSERT_TRUE(run.run());
  EXPECT_EQ(given, (std::vector<bool>{true, true, true, false}));
}

TEST_F(BenchTest, ADuplicateCostsNothingAndGetsTheFirstResult) {
  std::vector<double> seen;
  int answered = 0;
  Scripted::on_start = [](Scripted& s) {
    s.ask(1);
    s.ask(1);
    s.ask(1, true);
  };
  Scripted::on_result_of = [&](Scripted&, const Result& result) { seen.push_back(*result.metric("x")); };
  auto run = bench([&](const testing::Trial&) { return Answer::completed({{"x", ++answered}}); });
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.counted(), 2);
  EXPECT_EQ(seen, (std::vector<double>{1, 1, 2}));
}

TEST_F(BenchTest, AThousandDuplicatesInARowExhaustTheSpace) {
  int asked = 0;
  Scripted::on_start = [&](Scripted& s) {
    while (s.ask(1)) ++asked;
    EXPECT_TRUE(s.ask(2)) << "another configuration is still taken";
  };
  auto run = bench();
  ASSERT_TRUE(run.run());
  EXPECT_EQ(asked, 1 + 1000);
}

TEST_F(BenchTest, AStrategyThatLacksSomethingHasFailed) {
  dsat_factory factory = testing::factory<Scripted>();
  factory.create = [](const char*, const dsat_host*, dsat_str, dsat_strategy** out) noexcept -> dsat_status {
    *out = nullptr;
    return DSAT_OK;
  };
  Bench bench(factory, "scripted", study_, completed);
  EXPECT_FALSE(bench.run());
  EXPECT_THAT(bench.error(), ::testing::HasSubstr("incomplete strategy"));
}

// In the order of their exits: who ended and with which value.
TEST_F(BenchTest, ADuplicateEndsAfterItsOriginalWhateverTheOrder) {
  std::vector<std::string> exits;
  Scripted::on_start = [](Scripted& s) {
    s.ask(1);
    s.ask(1);
    s.ask(2);
  };
  Scripted::on_result_of = [&](Scripted&, const Result& result) {
    exits.push_back(std::to_string(result.trial()) + ": " + std::to_string(static_cast<int>(*result.metric("x"))));
  };
  auto run = bench([](const testing::Trial& trial) { return Answer::completed({{"x", 10 + trial.micro_batch()}}); });
  run.end_in_order([](size_t running) {
    EXPECT_LE(running, 2u);  // the duplicate takes no slot
    return running - 1;
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(exits, (std::vector<std::string>{"2: 12", "0: 11", "1: 11"}));
}

TEST_F(BenchTest, AStoppedTrialAnswersForNoLaterOne) {
  Scripted::on_start = [](Scripted& s) { s.stop_trial(*s.ask(1)); };
  Scripted::on_exit = [](Scripted& s, const Exit& exit) {
    if (exit.trial() == 0) s.ask(1);
  };
  auto run = bench();
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.ended().size(), 2u);
  EXPECT_FALSE(run.asked()[1].duplicate);
  EXPECT_EQ(run.ended()[1].answer.outcome, Outcome::completed);
}

TEST_F(BenchTest, TheOrderOfKeysMakesNoOtherConfiguration) {
  study_.base_config = Json::object();
  Scripted::on_start = [](Scripted& s) {
    s.host().create_trial({{{"a", 1}, {"b", {{"c", 5e8}, {"d", 2}}}}, ""});
    s.host().create_trial({{{"b", {{"d", 2}, {"c", 500000000}}}, {"a", 1}}, ""});
  };
  auto run = bench();
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.asked()[1].duplicate_of, 0u);
  EXPECT_EQ(run.counted(), 1);
}

TEST_F(BenchTest, AnInvalidConfigurationCostsNothing) {
  Scripted::on_start = [](Scripted& s) { s.ask(1); };
  auto run = bench([](const testing::Trial&) {
    return Answer{Outcome::invalid_config, {}, std::nullopt, "stage 3 with a pipeline"};
  });
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.counted(), 0);
}

TEST_F(BenchTest, ResultsComeBeforeExitsAndOnlyForCompletedTrials) {
  std::string order;
  Scripted::on_start = [](Scripted& s) {
    s.ask(1);
    s.ask(2);
  };
  Scripted::on_result_of = [&](Scripted&, const Result& r) { order += "r" + std::to_string(r.trial()); };
  Scripted::on_exit = [&](Scripted&, const Exit& e) { order += "e" + std::to_string(e.trial()); };
  auto run = bench([](const testing::Trial& trial) {
    return trial.micro_batch() == 1 ? Answer::out_of_memory() : Answer::completed({{"x", 1}});
  });
  ASSERT_TRUE(run.run());
  EXPECT_EQ(order, "e0r1e1");
}

TEST_F(BenchTest, AStoppedTrialExitsAsStopped) {
  std::vector<Outcome> outcomes;
  Scripted::on_start = [](Scripted& s) {
    s.ask(1);
    s.stop_trial(*s.ask(2));
  };
  Scripted::on_exit = [&](Scripted&, const Exit& e) { outcomes.push_back(e.outcome()); };
  auto run = bench();
  ASSERT_TRUE(run.run());
  EXPECT_EQ(outcomes, (std::vector<Outcome>{Outcome::completed, Outcome::stopped}));
}

TEST_F(BenchTest, OnlyACommandThatEndedByItselfHasAnExitCode) {
  std::map<TrialId, int> codes;
  study_.limits.max_trials = 5;
  Scripted::on_start = [](Scripted& s) {
    for (int i = 0; i <= 4; ++i) s.ask(i + 1);
    s.stop_trial(4);
  };
  Scripted::on_exit = [&](Scripted&, const Exit& e) { codes[e.trial()] = e.exit_code(); };
  auto run = bench([](const testing::Trial& trial) {
    constexpr Outcome kOutcomes[] = {Outcome::completed, Outcome::failed, Outcome::out_of_memory,
                                     Outcome::invalid_config};
    return Answer{kOutcomes[trial.id], {}, std::nullopt, ""};
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(codes, (std::map<TrialId, int>{{0, 0}, {1, 1}, {2, 1}, {3, -1}, {4, -1}}));
}

TEST_F(BenchTest, StoppingAnUnknownTrialIsAnError) {
  Scripted::on_start = [](Scripted& s) { s.stop_trial(5); };
  auto run = bench();
  EXPECT_FALSE(run.run());
  EXPECT_THAT(run.error(), ::testing::HasSubstr("stop_trial"));
}

TEST_F(BenchTest, AfterFinishOpenTrialsAreStoppedAndNoOpIsLegal) {
  std::vector<Outcome> outcomes;
  Scripted::on_start = [](Scripted& s) {
    s.ask(1);
    s.ask(2);
  };
  Scripted::on_exit = [&](Scripted& s, const Exit& e) {
    outcomes.push_back(e.outcome());
    if (outcomes.size() == 1) return s.finish("enough", 0);
    EXPECT_THROW(s.ask(3), Error);
  };
  auto run = bench();
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.finished());
  EXPECT_EQ(run.best(), 0u);
  EXPECT_EQ(run.finish_reason(), "enough");
  EXPECT_EQ(outcomes, (std::vector<Outcome>{Outcome::completed, Outcome::stopped}));
}

TEST_F(BenchTest, NoMoreThanTheConcurrencyLimitRunsAtOnce) {
  std::vector<size_t> running;
  Scripted::on_start = [](Scripted& s) {
    for (int i = 1; i <= 3; ++i) s.ask(i);
  };
  auto run = bench();
  run.end_in_order([&](size_t n) {
    running.push_back(n);
    return n - 1;
  });
  ASSERT_TRUE(run.run());
  EXPECT_EQ(running, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(run.ended()[0].trial.id, 1u);
}

TEST_F(BenchTest, TheProfilesTrialsComeFirstAndCount) {
  study_.limits.max_trials = 4;
  study_.profile = {{"trials", {0, 1}}};
  Json measured = study_.base_config;
  testing::merge(measured, {{"train_micro_batch_size_per_gpu", 1}});
  study_.observations = Json::array({{{"trial", 1}, {"config", measured}, {"outcome", "completed"}}});
  Scripted::on_start = [](Scripted& s) {
    for (int i = 1; i <= 4; ++i) s.ask(i);
  };
  auto run = bench();
  ASSERT_TRUE(run.run());
  ASSERT_EQ(run.asked().size(), 3u);  // a duplicate of the profile's, and two more
  EXPECT_EQ(run.asked()[0].id, 2u);
  EXPECT_TRUE(run.asked()[0].duplicate);
  EXPECT_FALSE(run.asked()[1].duplicate);
  EXPECT_EQ(run.counted(), 4);
}

// As the host writes it: batch sizes complete, the keys in another order.
TEST_F(BenchTest, AnObservationAnswersForItsConfiguration) {
  study_.observations = Json::array({{{"trial", 0},
                                      {"config",
                                       {{"train_micro_batch_size_per_gpu", 1},
                                        {"gradient_accumulation_steps", 1},
                                        {"train_batch_size", 1},
                                        {"zero_optimization", {{"stage", 1}}}}},
                                      {"outcome", "completed"},
                                      {"metrics", {{"x", 5}}},
                                      {"peak_bytes", 7}}});
  Scripted::on_start = [](Scripted& s) { s.ask(1); };
  std::vector<double> seen;
  Scripted::on_result_of = [&](Scripted&, const Result& result) { seen.push_back(*result.metric("x")); };
  Scripted::on_exit = [](Scripted&, const Exit& exit) { EXPECT_EQ(exit.peak_bytes(), 7u); };
  auto run = bench([](const testing::Trial&) -> Answer { throw std::logic_error("nothing is to be measured"); });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(seen, (std::vector<double>{5}));
  EXPECT_EQ(run.counted(), 0);
}

TEST_F(BenchTest, AStrategyMayLogFromAnyThread) {
  Scripted::on_start = [](Scripted& s) {
    const auto many = [&s] {
      for (int i = 0; i < 1000; ++i) s.log(Severity::info, "a line of some length");
    };
    std::thread other(many);
    many();
    other.join();
  };
  auto run = bench(completed);
  run.start();
  EXPECT_EQ(run.logs().size(), 2000u);
}

TEST_F(BenchTest, AStudyHasSlotsAndOpenTrialsAsOneOfTheHostDoes) {
  Bench run(testing::factory<Racer>(), "racer", study_, completed);
  run.start();
  EXPECT_EQ(run.logs(), (std::vector<std::string>{"open 2 of 2 slots 1 1 1"}));
}

TEST_F(BenchTest, ARunThatIsTakenOverGoesOnAsItWouldHave) {
  study_.limits.max_trials = 9;
  study_.limits.max_concurrent_trials = 3;
  Bench whole(testing::factory<Racer>(), "racer", study_, completed);
  ASSERT_TRUE(whole.run()) << whole.error();
  for (const int steps : {0, 1, 2, 4, 100}) {
    Bench before(testing::factory<Racer>(), "racer", study_, completed);
    before.start();
    for (int i = 0; i < steps && before.step(); ++i) {
    }
    Bench after(testing::factory<Racer>(), "racer", study_, completed);
    after.restore_from(before);
    while (after.step()) {
    }
    EXPECT_EQ(after.error(), "") << steps;
    EXPECT_EQ(after.ops(), whole.ops()) << steps;
    EXPECT_EQ(after.finish_reason(), "raced") << steps;
    EXPECT_EQ(after.best(), whole.best()) << steps;
  }
}

TEST_F(BenchTest, AWrongProfileAndThatOfASearcherAreRefused) {
  const auto error_with = [&](const Json& profile) {
    Scripted::on_start = [&](Scripted& s) { s.host().set_profile(profile); };
    auto run = bench();
    run.run();
    return run.error();
  };
  EXPECT_EQ(error_with({{"schema", 1}, {"num_params", 7}}), "");
  EXPECT_THAT(error_with({{"schema", 7}, {"num_params", 7}}), ::testing::HasSubstr("schema: 7"));
  EXPECT_THAT(error_with({{"schema", 1}}), ::testing::HasSubstr("no num_params"));
  EXPECT_THAT(error_with({{"schema", 1}, {"num_params", 7}, {"trainable_num_params", 8}}),
              ::testing::AllOf(::testing::HasSubstr("trainable_num_params: 8"), ::testing::HasSubstr("num_params 7")));
  study_.profile = {{"schema", 1}, {"num_params", 7}};
  EXPECT_THAT(error_with(study_.profile), ::testing::HasSubstr("only a profiler"));
}

TEST_F(BenchTest, AnOpOutsideAnEventIsRefused) {
  auto run = bench();
  const dsat_host& host = run.host();
  EXPECT_EQ(host.finish(&host, {nullptr, 0}, DSAT_NO_TRIAL), DSAT_FAILED_PRECONDITION);
  dsat_trial_request request{sizeof(request), 0, DSAT_NO_TRIAL, {"{}", 2}, {nullptr, 0}};
  dsat_trial_id id = 0;
  EXPECT_EQ(host.create_trial(&host, &request, &id), DSAT_FAILED_PRECONDITION);
}

TEST_F(BenchTest, ATrialWithoutANumberInItsPlaceIsNotTheBenchsTrouble) {
  study_.limits.max_trials = 9;
  Scripted::on_start = [](Scripted& s) {
    for (const char* overrides :
         {R"({"train_micro_batch_size_per_gpu": "two"})", R"({"train_micro_batch_size_per_gpu": null})",
          R"({"zero_optimization": {"stage": "three"}})", R"({"zero_optimization": 7})"}) {
      s.host().create_trial({Json::parse(overrides), "", kNoTrial, true});
    }
  };
  auto run = bench([](const testing::Trial& trial) {
    EXPECT_EQ(trial.micro_batch(), 0);
    return Answer::completed({{"stage", trial.stage()}});
  });
  EXPECT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.ended().size(), 4u);
}

TEST_F(BenchTest, OverridesThatAreNoObjectAreRefused) {
  Scripted::on_start = [](Scripted& s) {
    for (const std::string bad : {"", "[1]", "{", "3"}) {
      const dsat_trial_request request{sizeof(request), 0, DSAT_NO_TRIAL, {bad.data(), bad.size()}, {nullptr, 0}};
      dsat_trial_id id = 0;
      EXPECT_EQ(s.host().raw()->create_trial(s.host().raw(), &request, &id), DSAT_INVALID_ARGUMENT) << bad;
    }
  };
  EXPECT_TRUE(bench().run());
}

TEST_F(BenchTest, AnUnknownOptionOrStrategyIsRefused) {
  const auto answer = [](const testing::Trial&) { return Answer(); };
  EXPECT_THROW(Bench(testing::factory<Scripted>(), "scripted", study_, answer, {{"m", 1}}), Error);
  EXPECT_THROW(Bench(testing::factory<Scripted>(), "nobody", study_, answer), Error);
}

}  // namespace
}  // namespace dsat
