// What a study does so that a cause costs few runs: it takes back what waits, leaves out a key that a script refuses,
// and asks again where a shortage is doubtful.
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::StartsWith;

class LostRunsTest : public StudyTest {
 protected:
  static Json at(int stage, int64_t samples) {
    Json op = try_micro_batch(samples);
    config::set(op["try"], config::kStageKey, stage);
    return op;
  }
};

TEST_F(LostRunsTest, TrialsThatWaitAreNotRunOnceTheirCulpritIsKnown) {
  StudyOptions given =
      scripted({{"start", {at(1, 2)}}, {"exit 0", {at(2, 2), at(2, 3), at(2, 4), at(2, 5), at(1, 4)}}});
  given.max_concurrent_trials = 1;
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    const bool fails = config::zero_stage(spec.config) == 2;
    return fails ? failed(Outcome::failed, "RuntimeError: no stage 2") : completed(100);
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  const std::vector<Trial> trials = session.trials();
  ASSERT_EQ(trials.size(), 6u);
  EXPECT_THAT(session.deliveries(), ::testing::Contains("exit 4 invalid_config"));
  EXPECT_EQ(trials[4].record.outcome, Outcome::invalid_config);
  EXPECT_EQ(trials[4].record.attempt, 0u) << "it never ran";
  EXPECT_EQ(trials[5].record.outcome, Outcome::completed);
  EXPECT_TRUE(session.observer.logged("zero_optimization.stage 2"));
}

// zero.Init reads the file before the processes know of each other.
TrialEnd refusing_train_batch(const TrialSpec& spec) {
  const bool refuses = spec.has_train_batch && spec.config.contains(config::kTrainBatchKey);
  return refuses ? failed(Outcome::failed,
                          "AssertionError: Check batch related parameters. train_batch_size is not "
                          "equal to micro_batch_per_gpu * gradient_acc_step * world_size 256 != 4 * 8 * 1")
                 : completed(100);
}

TEST_F(LostRunsTest, ATrainBatchThatTheScriptRefusesIsLeftOutFromThenOn) {
  const StudyOptions given = scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {try_micro_batch(2)}}});
  Session session(plan_of(given));
  session.runner.answer = refusing_train_batch;
  const StudyResult result = session.run_new();
  ASSERT_EQ(result.status, StudyStatus::completed) << result.reason;
  EXPECT_EQ(session.runner.started.size(), 3u) << "one run was lost";
  EXPECT_FALSE(session.runner.started.back().has_train_batch);
  ASSERT_TRUE(result.best);
  EXPECT_FALSE(result.best->config.contains(config::kTrainBatchKey)) << "the training would refuse it too";
  EXPECT_TRUE(session.trials()[0].record.config.contains(config::kTrainBatchKey)) << "dsat reckons with it";
  session.close_journal();
  EXPECT_FALSE(resumed_state(*Journal::open(given.output_dir, Journal::Mode::open), resumed_plan(given.output_dir), {},
                             session.plugin_log, session.observer, session.loop)
                   .has_train_batch);
}

TEST_F(LostRunsTest, ATrainBatchThatTheUserGivesStays) {
  write_text(dir() / "ds_config.json", R"({"train_micro_batch_size_per_gpu": 1, "train_batch_size": 1})");
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  session.runner.answer = refusing_train_batch;
  EXPECT_EQ(session.run_new().status, StudyStatus::no_best);
  EXPECT_EQ(session.runner.started.size(), 1u);
  EXPECT_TRUE(session.runner.started.back().has_train_batch);
}

TEST_F(LostRunsTest, ADoubtfulShortageRunsAgainAndThenCounts) {
  const StudyOptions given = scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {try_micro_batch(2)}}});
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    if (spec.id == 0 && spec.attempt == 2) return completed(100);
    TrialEnd end = failed(Outcome::out_of_memory, "tried to allocate 214 MiB, 20 GiB free");
    end.infrastructure = true;
    return end;
  };
  session.run_new();
  EXPECT_EQ(session.trials()[0].record.outcome, Outcome::completed);
  EXPECT_EQ(session.trials()[1].record.outcome, Outcome::out_of_memory);
  EXPECT_EQ(session.trials()[1].record.attempt, 2u);
}

TEST_F(LostRunsTest, WithoutABestTheReasonNamesEachCulpritAndWhatDoesNotFit) {
  StudyOptions given = scripted({{"start", {at(1, 1)}},
                                 {"exit 0", {at(2, 1)}},
                                 {"exit 1", {at(3, 1)}},
                                 {"exit 2", {at(2, 2)}},
                                 {"exit 3", {at(2, 3)}}});
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    const bool is_broken = config::zero_stage(spec.config) == 2;
    return is_broken ? failed(Outcome::failed, "RuntimeError: no stage 2")
                     : failed(Outcome::out_of_memory, "CUDA out of memory");
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, AllOf(StartsWith("nothing fits: stages 1, 3 "), HasSubstr("offload"),
                                   HasSubstr("stage 2 always failed"), HasSubstr("RuntimeError: no stage 2")));
}

}  // namespace
}  // namespace dsat::host
