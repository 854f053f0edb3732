// The user's own configuration as a trial: what it is, when it runs, and that nothing it does stops the search.
#include "host/study/study_fixture.h"
#include "study/state/baseline_configuration.h"

namespace dsat::host {
namespace {

class BaselineTest : public StudyTest {
 protected:
  StudyOptions with_baseline(const Json& script = {{"start", {try_micro_batch(8)}},
                                                   {"exit *", {{{"finish", "done"}}}}}) {
    StudyOptions given = scripted(script);
    given.baseline = true;
    return given;
  }
  // The own configuration of a plan made of this configuration and these words of the command.
  BaselineConfiguration own_of(
      const std::string& config, const std::vector<std::string>& words = {},
      const std::function<void(StudyOptions&)>& change = [](StudyOptions&) {}) {
    write_text(dir() / "ds_config.json", config);
    StudyOptions given = options();
    given.command.insert(given.command.end(), words.begin(), words.end());
    change(given);
    return baseline_configuration(plan_of(given));
  }
};

TEST_F(BaselineTest, RunsBeforeTheSearcherWhichFindsItAmongItsObservations) {
  Session session(plan_of(with_baseline()));
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  const std::vector<Trial> trials = session.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].record.kind, TrialKind::baseline);
  EXPECT_EQ(trials[0].phase, Phase::baseline);
  EXPECT_EQ(micro_batch(trials[0].record.config), 1);
  EXPECT_EQ(trials[1].record.kind, TrialKind::search);
  const auto events = Journal::open(session.plan.dir, Journal::Mode::read_only)->events();
  const auto start = std::find_if(events.begin(), events.end(), [](const JournalEvent& entry) {
    return entry.phase == Phase::searcher && entry.event.kind == StrategyEvent::Kind::start;
  });
  const Json& observations = start->event.study.at("observations");
  ASSERT_EQ(observations.size(), 1u);
  EXPECT_EQ(observations[0].at("trial"), 0);
  EXPECT_EQ(observations[0].at("metrics").at("throughput"), 101.0);
}

TEST_F(BaselineTest, ATracesConfigurationIsNobodys) {
  Plan plan = plan_of(with_baseline());
  EXPECT_EQ(baseline_configuration(plan).why_not, "");
  plan.simulation.emplace();
  plan.simulation->name = "trace";
  EXPECT_EQ(baseline_configuration(plan).why_not, "") << "the command has one";
  plan.command.clear();
  EXPECT_EQ(baseline_configuration(plan).why_not, "") << "--ds-config has one";
  plan.config_file = "trace";
  EXPECT_EQ(baseline_configuration(plan).why_not, "") << "a scenario has one";
  plan.simulation->source = {{"file", "runs.csv"}, {"trace", ""}};
  EXPECT_THAT(baseline_configuration(plan).why_not, HasSubstr("COMMAND nor --ds-config"));
}

TEST_F(BaselineTest, CompetesForTheBest) {
  Session session(plan_of(with_baseline()));
  session.runner.answer = [](const TrialSpec& spec) { return completed(100.0 / micro_batch(spec.config)); };
  const StudyResult result = session.run_new();
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->trial, 0u);
}

TEST_F(BaselineTest, OneThatFailsIsNoReasonToStop) {
  for (const Outcome outcome : {Outcome::failed, Outcome::out_of_memory, Outcome::timed_out}) {
    fs::remove_all(dir() / "run");
    Session session(plan_of(with_baseline()));
    session.runner.answer = [&](const TrialSpec& spec) {
      return micro_batch(spec.config) == 1 ? failed(outcome, "no") : completed(50);
    };
    const StudyResult result = session.run_new();
    EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
    EXPECT_EQ(result.best->trial, 1u);
  }
}

TEST_F(BaselineTest, IsLeftOutOnRequestAndWhereTheLimitLeavesNoTrial) {
  StudyOptions given = with_baseline();
  given.baseline = false;
  Session without(plan_of(given));
  without.run_new();
  EXPECT_EQ(without.trials().front().phase, Phase::searcher);
  fs::remove_all(dir() / "run");
  given.baseline = true;
  given.max_trials = 1;
  Session with_one(plan_of(given));
  with_one.run_new();
  EXPECT_EQ(with_one.trials().front().phase, Phase::searcher);
  EXPECT_TRUE(with_one.observer.logged("not measured: --max-trials"));
}

TEST_F(BaselineTest, AProfileTrialOfTheSameConfigurationIsEnough) {
  StudyOptions given = with_baseline();
  given.profiler.options["script"] =
      Json{{"start", {try_micro_batch(1)}},
           {"exit *", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "done"}}}}}
          .dump();
  Session session(plan_of(given));
  session.run_new();
  const std::vector<Trial> trials = session.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].record.kind, TrialKind::profile);
  EXPECT_EQ(trials[1].record.kind, TrialKind::search);
}

TEST_F(BaselineTest, ACrashWhileItRunsChangesNothing) {
  Session first(plan_of(with_baseline()));
  first.runner.held = {0};
  first.runner.when_all_held = [&] { first.request_stop(); };
  EXPECT_EQ(first.run_new().status, StudyStatus::interrupted);
  Session second(resumed_plan(dir() / "run"));
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
  const std::vector<Trial> trials = second.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].record.kind, TrialKind::baseline);
  EXPECT_EQ(trials[0].record.outcome, Outcome::completed);
}

TEST_F(BaselineTest, IsWhatTheUsersNumbersSay) {
  EXPECT_EQ(own_of(R"({"train_micro_batch_size_per_gpu": 4})").why_not, "");
  EXPECT_EQ(own_of(R"({"train_batch_size": 4})").why_not, "");
  EXPECT_THAT(own_of("{}").why_not, HasSubstr("gives train_micro_batch_size_per_gpu"));
  EXPECT_THAT(own_of(R"({"train_micro_batch_size_per_gpu": "auto"})").why_not, HasSubstr("gives train_micro_batch"));
  EXPECT_THAT(own_of(R"({"train_micro_batch_size_per_gpu": [2, 4]})").why_not, HasSubstr("gives train_micro_batch"));
  EXPECT_THAT(
      own_of(R"({"train_micro_batch_size_per_gpu": 4})", {}, [](StudyOptions& o) { o.max_micro_batch = 2; }).why_not,
      HasSubstr("4"));
}

// The first of the list is the user's own; the micro batch is that of no train batch, which follows the list.
TEST_F(BaselineTest, AListOfAccumulationsIsAnAxisAndEndsNoStudy) {
  EXPECT_EQ(own_of(R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": [2, 1]})").why_not, "");
  EXPECT_THAT(own_of(R"({"train_batch_size": 8, "gradient_accumulation_steps": [2, 1]})").why_not,
              HasSubstr("gives train_micro_batch"));
  write_text(dir() / "ds_config.json",
             R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": [2, 1]})");
  Session session(plan_of(with_baseline()));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  const std::vector<Trial> trials = session.trials();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].record.kind, TrialKind::baseline);
  EXPECT_EQ(trials[0].record.config["gradient_accumulation_steps"], 2);
}

TEST_F(BaselineTest, APipelineAboveTheBoundOfTheTrainBatchIsNotMeasured) {
  const auto bounded = [](StudyOptions& o) {
    o.slots_per_trial = 4;
    o.zero_stages = {1};
    o.max_train_batch_size = 2;
  };
  const std::string micro_batch = R"({"train_micro_batch_size_per_gpu": 1, "pipeline": {"stages": )";
  EXPECT_EQ(own_of(micro_batch + "[2, 1]}}", {}, bounded).why_not, "");
  EXPECT_THAT(own_of(micro_batch + "[1, 2]}}", {}, bounded).why_not, HasSubstr("--max-train-batch-size 2"));
}

TEST_F(BaselineTest, TheTrainersFlagsStandInForAuto) {
  const std::string config = R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})";
  const BaselineConfiguration own = own_of(config, {}, [](StudyOptions& o) {
    o.command = {"/bin/true",
                 "train.py",
                 "--deepspeed",
                 "ds_config.json",
                 "--output_dir",
                 "o",
                 "--per_device_train_batch_size",
                 "16",
                 "--gradient_accumulation_steps=2"};
  });
  EXPECT_EQ(own.why_not, "");
  EXPECT_THAT(own.identity, HasSubstr("\"gradient_accumulation_steps\":2"));
  EXPECT_THAT(own.identity, HasSubstr("\"train_micro_batch_size_per_gpu\":16"));
}

TEST_F(BaselineTest, AStageThatItsOwnKeysForbidIsNoConfiguration) {
  const BaselineConfiguration own = own_of(
      R"({"train_micro_batch_size_per_gpu": 4,
          "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})");
  EXPECT_THAT(own.why_not, HasSubstr("stage"));
  EXPECT_EQ(own.identity, "");
}

}  // namespace
}  // namespace dsat::host
