// What a strategy is promised: ids, events, duplicates, limits, stopping. Whole studies run with a scripted searcher
// and a runner without processes.
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CoordinatorTest : public StudyTest {};

TEST_F(CoordinatorTest, TellsEachTrialsResultAndThenItsExit) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(2), try_micro_batch(4)}}, {"exit 1", {{{"finish", "done"}}}}})));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  EXPECT_EQ(result.reason, "done");
  EXPECT_THAT(session.deliveries(),
              ElementsAre("start", "result 0", "exit 0 completed", "result 1", "exit 1 completed"));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->trial, 1u);
  EXPECT_EQ(micro_batch(result.best->config), 4);
}

TEST_F(CoordinatorTest, ATrialThatDidNotCompleteHasAnExitAndNoResult) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2), try_micro_batch(4), try_micro_batch(8)}}})));
  session.runner.answer = [](const TrialSpec& spec) {
    if (spec.id == 0) return failed(Outcome::out_of_memory, "CUDA out of memory");
    if (spec.id == 1) return failed(Outcome::timed_out, "nothing for 10 minutes");
    return completed(5);
  };
  const StudyResult result = session.run_new();
  EXPECT_THAT(session.deliveries(),
              ElementsAre("start", "exit 0 out_of_memory", "exit 1 timed_out", "result 2", "exit 2 completed"));
  EXPECT_EQ(result.counts.at(Outcome::out_of_memory), 1);
  EXPECT_EQ(result.counts.at(Outcome::timed_out), 1);
  EXPECT_EQ(result.counts.at(Outcome::completed), 1);
}

TEST_F(CoordinatorTest, IdsGoOnFromTheProfilersTrialsToTheSearchers) {
  StudyOptions with_profile = scripted({{"start", {try_micro_batch(2)}}});
  with_profile.profiler.options["script"] =
      Json{{"start", {try_micro_batch(1)}},
           {"exit 0", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
          .dump();
  Session session(plan_of(with_profile));
  session.run_new();
  const std::vector<Trial> trials = session.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].record.kind, TrialKind::profile);
  EXPECT_EQ(trials[1].record.kind, TrialKind::search);
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "result 1", "exit 1 completed"));
}

TEST_F(CoordinatorTest, ASecondIdenticalRequestIsAnsweredFromTheFirstAfterItsEnd) {
  Json again = try_micro_batch(2);
  Session session(plan_of(scripted({{"start", {try_micro_batch(2), again, try_micro_batch(4)}}, {"exit 2", {again}}})));
  const StudyResult result = session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "result 0", "exit 0 completed", "result 1", "exit 1 completed",
                                                "result 2", "exit 2 completed", "result 3", "exit 3 completed"));
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 2));
  const std::vector<Trial> trials = session.trials();
  EXPECT_EQ(trials[1].record.duplicate_of, 0u);
  EXPECT_EQ(trials[1].record.kind, TrialKind::duplicate);
  EXPECT_EQ(trials[1].record.metrics, trials[0].record.metrics);
  EXPECT_EQ(trials[3].record.duplicate_of, 0u);
  EXPECT_EQ(result.counts.at(Outcome::completed), 2) << "duplicates are not counted";
}

TEST_F(CoordinatorTest, ARepeatRunsAndTheMeanIsWhatCounts) {
  Json repeat = try_micro_batch(2);
  repeat["repeat"] = true;
  Session session(plan_of(scripted({{"start", {try_micro_batch(2), repeat, try_micro_batch(4)}}})));
  session.runner.answer = [](const TrialSpec& spec) { return completed(spec.id == 0 ? 10 : spec.id == 1 ? 30 : 21); };
  const StudyResult result = session.run_new();
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 1, 2));
  EXPECT_EQ(session.trials()[1].record.kind, TrialKind::repeat);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->trial, 2u) << "the mean of 10 and 30 is below 21";
}

TEST_F(CoordinatorTest, AnInvalidConfigurationExitsAndCostsNothing) {
  StudyOptions limited = scripted({{"start", {try_micro_batch(-3), try_micro_batch(4)}}});
  limited.max_trials = 1;
  Session session(plan_of(limited));
  const StudyResult result = session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "exit 0 invalid_config", "result 1", "exit 1 completed"));
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(1));
  EXPECT_FALSE(session.trials()[0].record.started());
  EXPECT_EQ(result.status, StudyStatus::completed);
}

TEST_F(CoordinatorTest, RefusesRequestsAtTheTrialLimitButNotDuplicates) {
  StudyOptions limited =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3), try_micro_batch(2)}}});
  limited.max_trials = 2;
  Session session(plan_of(limited));
  session.run_new();
  EXPECT_EQ(session.runner.started.size(), 2u);
  EXPECT_TRUE(session.observer.logged("create_trial: 8")) << "DSAT_RESOURCE_EXHAUSTED";
  const std::vector<Trial> trials = session.trials();
  ASSERT_EQ(trials.size(), 3u) << "a refused request has no id";
  EXPECT_EQ(trials[2].record.duplicate_of, 1u);
}

TEST_F(CoordinatorTest, RunsInTheOrderOfRequestsAndNoMoreAtOnceThanTheLimit) {
  Json requests = Json::array();
  for (int i = 1; i <= 9; ++i) requests.push_back(try_micro_batch(i));
  StudyOptions narrow = scripted({{"start", requests}});
  narrow.max_concurrent_trials = 3;
  Session session(plan_of(narrow));
  session.run_new();
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(session.runner.most_at_once, 3u);
}

TEST_F(CoordinatorTest, SlotsLimitConcurrencyToo) {
  Json requests = Json::array();
  for (int i = 1; i <= 6; ++i) requests.push_back(try_micro_batch(i));
  StudyOptions wide = scripted({{"start", requests}});
  wide.slots = 8;
  wide.slots_per_trial = 4;
  Session session(plan_of(wide));
  session.run_new();
  EXPECT_EQ(session.runner.most_at_once, 2u);
}

TEST_F(CoordinatorTest, AWaitingTrialThatIsStoppedNeverRunsAndCostsNothing) {
  StudyOptions narrow =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2), {{"stop", 1}}}}, {"exit 0", {try_micro_batch(3)}}});
  narrow.max_concurrent_trials = 1;
  narrow.max_trials = 2;
  Session session(plan_of(narrow));
  session.run_new();
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 2));
  EXPECT_EQ(session.trials()[1].record.outcome, Outcome::stopped);
  EXPECT_EQ(session.trials()[1].record.reason, "stopped before it ran");
}

TEST_F(CoordinatorTest, ARunningTrialThatIsStoppedExitsAsStopped) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 0", {{{"stop", 1}}}}})));
  session.runner.held = {1};
  session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "result 0", "exit 0 completed", "exit 1 stopped"));
  EXPECT_THAT(session.runner.stopped, ElementsAre(std::pair<uint64_t, bool>(1, false)));
}

TEST_F(CoordinatorTest, AWaitingDuplicateThatIsStoppedExitsAsStoppedAndItsOriginalGoesOn) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2), try_micro_batch(2), {{"stop", 1}}}}})));
  session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "exit 1 stopped", "result 0", "exit 0 completed"));
}

TEST_F(CoordinatorTest, StoppingATrialThatHasEndedDoesNothing) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(2)}}, {"exit 0", {{{"stop", 0}}, try_micro_batch(4)}}})));
  const StudyResult result = session.run_new();
  EXPECT_THAT(session.deliveries(),
              ElementsAre("start", "result 0", "exit 0 completed", "result 1", "exit 1 completed"));
  EXPECT_EQ(result.status, StudyStatus::completed);
}

TEST_F(CoordinatorTest, AfterAStoppedTrialTheSameConfigurationIsATrialOfItsOwn) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(2), {{"stop", 0}}}}, {"exit 0", {try_micro_batch(2)}}})));
  session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "exit 0 stopped", "result 1", "exit 1 completed"));
}

TEST_F(CoordinatorTest, AStoppedRepeatLeavesTheFirstMeasurementToAnswerForIt) {
  Json repeat = try_micro_batch(2);
  repeat["repeat"] = true;
  Session session(plan_of(scripted(
      {{"start", {try_micro_batch(2)}}, {"exit 0", {repeat, {{"stop", 1}}}}, {"exit 1", {try_micro_batch(2)}}})));
  session.run_new();
  EXPECT_EQ(session.trials()[2].record.duplicate_of, 0u);
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0));
}

TEST_F(CoordinatorTest, FinishStopsWhatIsOpenAndOnlyExitsFollow) {
  StudyOptions narrow =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3), try_micro_batch(4)}},
                {"exit 0", {{{"finish", "enough"}}}}});
  narrow.max_concurrent_trials = 2;
  Session session(plan_of(narrow));
  session.runner.held = {1};
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.reason, "enough");
  EXPECT_EQ(result.status, StudyStatus::completed);
  const std::vector<std::string> deliveries = session.deliveries();
  EXPECT_EQ(std::count(deliveries.begin(), deliveries.end(), "exit 1 stopped"), 1);
  EXPECT_EQ(std::count(deliveries.begin(), deliveries.end(), "exit 2 stopped"), 1);
  EXPECT_EQ(std::count(deliveries.begin(), deliveries.end(), "exit 3 stopped"), 1);
  EXPECT_EQ(deliveries.size(), 6u) << "start, result 0 and four exits";
}

TEST_F(CoordinatorTest, ATrialThatCompletesAfterFinishHasNoResultEvent) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 0", {{{"finish", "enough"}}}}})));
  session.runner.held = {1};
  session.runner.answers_when_stopped = true;
  session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "result 0", "exit 0 completed", "exit 1 completed"));
}

TEST_F(CoordinatorTest, TheTrialThatTheSearcherBelievesBestIsTheBest) {
  Session session(plan_of(scripted(
      {{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 1", {{{"finish", "done"}, {"best", 0}}}}})));
  const StudyResult result = session.run_new();
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->trial, 0u);
  EXPECT_THAT(result.best->why, HasSubstr("is trial 1"));
}

TEST_F(CoordinatorTest, AnInfrastructureFailureIsRunAgainOnceUnseenAndUncounted) {
  StudyOptions one = scripted({{"start", {try_micro_batch(2)}}});
  one.max_trials = 1;
  Session session(plan_of(one));
  session.runner.answer = [](const TrialSpec& spec) {
    if (spec.attempt > 1) return completed(7);
    TrialEnd end = failed(Outcome::failed, "EADDRINUSE");
    end.infrastructure = true;
    return end;
  };
  session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "result 0", "exit 0 completed"));
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 0));
  EXPECT_EQ(session.trials()[0].record.attempt, 2u);
  EXPECT_TRUE(session.observer.logged("EADDRINUSE"));
}

TEST_F(CoordinatorTest, ASecondInfrastructureFailureIsTheTrialsOutcome) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2)}}})));
  session.runner.answer = [](const TrialSpec&) {
    TrialEnd end = failed(Outcome::failed, "EADDRINUSE");
    end.infrastructure = true;
    return end;
  };
  const StudyResult result = session.run_new();
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "exit 0 failed"));
  EXPECT_EQ(result.status, StudyStatus::no_best);
}

TEST_F(CoordinatorTest, AnInfrastructureFailureOfAStoppedTrialIsNotRunAgain) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 0", {{{"stop", 1}}}}})));
  session.runner.held = {1};
  session.runner.answers_when_stopped = true;
  session.runner.answer = [](const TrialSpec& spec) {
    TrialEnd end = spec.id == 0 ? completed(3) : failed(Outcome::failed, "EADDRINUSE");
    end.infrastructure = spec.id == 1;
    return end;
  };
  session.run_new();
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 1));
}

TEST_F(CoordinatorTest, TheProfileTrialsWorldSizeCorrectsTheBatchOfMeasuredTrials) {
  StudyOptions with_profile = scripted({{"start", {try_micro_batch(3)}}});
  const Json model_info{{"try", {{"autotuning", {{"model_info", {{"profile", true}}}}}}}};
  with_profile.profiler.options["script"] =
      Json{{"start", {model_info}},
           {"exit 0", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
          .dump();
  Session session(plan_of(with_profile));
  session.runner.answer = [](const TrialSpec& spec) {
    TrialEnd end = completed(9);
    if (!spec.model_info) return end;
    end.metrics = {{"num_params", 1000}};
    end.world_size = 4;
    end.engine_version = "0.12.3";
    end.device_memory_bytes = uint64_t{1} << 30;
    return end;
  };
  const StudyResult result = session.run_new();
  ASSERT_EQ(session.runner.started.size(), 2u);
  EXPECT_TRUE(session.runner.started[0].model_info);
  EXPECT_EQ(session.runner.started[1].config[config::kTrainBatchKey], 12);
  EXPECT_TRUE(session.observer.logged("data-parallel size 4")) << "the searcher knows";
  EXPECT_TRUE(session.observer.logged("device memory 1073741824")) << "learned from the trial";
  const auto record = read_study(session.plan.dir);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record.value().profile.value("deepspeed_version", ""), "0.12.3") << "whose buffers the cost model counts";
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->config[config::kTrainBatchKey], 12);
}

// Gradients in fp32 beside bf16 without ZeRO: DeepSpeed takes them to 0.18.4.
TEST_F(CoordinatorTest, RulesFollowTheVersionThatTheFirstTrialReports) {
  write_text(
      dir() / "ds_config.json",
      R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1}})");
  const Json model_info{{"try", {{"autotuning", {{"model_info", {{"profile", true}}}}}}}};
  const Json without_zero{{"try", {{"zero_optimization", {{"stage", 0}}}}}};
  const auto trials_with = [&](const char* version) {
    StudyOptions with_profile = scripted({{"start", {without_zero}}});
    with_profile.zero_stages = {0, 1};
    with_profile.profiler.options["script"] =
        Json{{"start", {model_info}},
             {"exit 0", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
            .dump();
    Plan plan = plan_of(with_profile);
    plan.dir = dir() / version;
    Session session(std::move(plan));
    session.runner.answer = [version](const TrialSpec& spec) {
      TrialEnd end = completed(9);
      if (spec.model_info) end.metrics = {{"num_params", 1000}};
      end.engine_version = version;
      return end;
    };
    session.run_new();
    EXPECT_THAT(read_text(session.plan.dir / "summary.txt"),
                HasSubstr(std::string("trained with DeepSpeed ") + version));
    return session.runner.started.size();
  };
  EXPECT_EQ(trials_with("0.18.4"), 2u);
  EXPECT_EQ(trials_with("0.18.5"), 1u);
}

TEST_F(CoordinatorTest, TheTrialsWordOnItsDeviceOutweighsTheVendorsTool) {
  const Json model_info{{"try", {{"autotuning", {{"model_info", {{"profile", true}}}}}}}};
  StudyOptions with_profile = scripted({{"start", {try_micro_batch(3)}}});
  with_profile.profiler.options["script"] =
      Json{{"start", {model_info}},
           {"exit 0", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
          .dump();
  const auto memory_known = [&](std::optional<uint64_t> given, std::optional<uint64_t> by_the_trial) {
    Plan plan = plan_of(with_profile);
    plan.dir = dir() /
               ("given " + std::to_string(given.value_or(0)) + " reported " + std::to_string(by_the_trial.value_or(0)));
    plan.device_memory_bytes = given;
    plan.slots.device_memory_bytes = 2000;
    Session session(std::move(plan));
    session.runner.answer = [&](const TrialSpec& spec) {
      TrialEnd end = completed(9);
      if (spec.model_info) end.metrics = {{"num_params", 1000}};
      end.device_memory_bytes = by_the_trial;
      return end;
    };
    session.run_new();
    for (const uint64_t bytes : {500, 1000, 2000}) {
      if (session.observer.logged("device memory " + std::to_string(bytes))) return bytes;
    }
    return uint64_t{0};
  };
  EXPECT_EQ(memory_known(std::nullopt, 1000), 1000u);
  EXPECT_EQ(memory_known(std::nullopt, std::nullopt), 2000u);
  EXPECT_EQ(memory_known(500, 1000), 500u);
}

TEST_F(CoordinatorTest, ARequestForTheUsersOwnConfigurationIsTheBaseline) {
  Session session(plan_of(scripted({{"start", {{{"try", Json::object()}}, try_micro_batch(2)}}})));
  session.run_new();
  EXPECT_EQ(session.trials()[0].record.kind, TrialKind::baseline);
  EXPECT_EQ(session.trials()[1].record.kind, TrialKind::search);
}

TEST_F(CoordinatorTest, ATrialsOwnWarningsAreReported) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2)}}})));
  session.runner.answer = [](const TrialSpec&) {
    TrialEnd end = completed(1);
    end.warnings = {"completed, but exit status 1"};
    return end;
  };
  session.run_new();
  EXPECT_TRUE(session.observer.logged("trial 0: completed, but exit status 1"));
}

TEST_F(CoordinatorTest, LinesFromAPluginsOwnThreadReachTheObserver) {
  Session session(plan_of(scripted({{"start", {{{"log_elsewhere", "from\nafar"}}, try_micro_batch(2)}}})));
  session.run_new();
  EXPECT_TRUE(session.observer.logged("from afar")) << "as one line";
}

TEST_F(CoordinatorTest, ANewSearcherGetsNoExitOfWhatTheEarlierOneLeftRunning) {
  Session first(plan_of(scripted({{"start", {try_micro_batch(2), try_micro_batch(4)}}})));
  const fs::path crash = dir() / "crash";
  first.runner.held = {1};
  first.runner.when_all_held = [&] {
    fs::copy(first.plan.dir, crash, fs::copy_options::recursive);
    first.request_stop();
  };
  first.run_new();
  Plan plan = resumed_plan(crash);
  plan.searcher.options["script"] = Json{{"start", {try_micro_batch(4)}}, {"exit 2", {{{"finish", "done"}}}}}.dump();
  Session second(plan);
  second.terms.another_searcher = true;
  second.runner.adopts = [](const TrialSpec& spec) { return spec.id == 1; };
  second.runner.held = {1};
  EXPECT_EQ(second.resume().reason, "done");
  EXPECT_EQ(second.trials()[1].record.outcome, Outcome::stopped);
  const std::vector<std::string> delivered = second.deliveries();
  EXPECT_EQ(std::vector<std::string>(delivered.end() - 3, delivered.end()),
            (std::vector<std::string>{"start", "result 2", "exit 2 completed"}));
  EXPECT_THAT(second.runner.started_ids(), ElementsAre(2)) << "what was stopped is measured anew";
}

}  // namespace
}  // namespace dsat::host
