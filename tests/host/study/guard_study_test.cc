// A whole study with the guard: who is diverged, who is handed back, and what the summary shows.
#include <fmt/format.h>

#include <cmath>

#include "dsat/config/rules.h"
#include "finals/finals.h"
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;

Json try_stage(int stage, int64_t micro_batch) {
  return {{"try", {{config::kMicroBatchKey, micro_batch}, {"zero_optimization", {{"stage", stage}}}}}};
}

// Stages 1, 2 and 3 with a micro batch each; stage 3 is the fastest, then stage 2.
Json three_stages() {
  return {{"start", {try_stage(1, 4), try_stage(2, 8), try_stage(3, 16)}}, {"exit 3", {{{"finish", "enough"}}}}};
}

class GuardStudyTest : public StudyTest {
 protected:
  GuardStudyTest() {
    write_text(dir() / "ds_config.json", R"({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1}})");
  }

  StudyOptions guarded(const Json& script = three_stages()) {
    StudyOptions given = scripted(script);
    given.baseline = true;
    given.max_trials = 24;
    return given;
  }
  static int stage_of(const TrialSpec& spec) { return config::zero_stage(spec.config); }

  // The same losses and norms whatever the configuration, as long as it is right; 6 steps.
  static TrialEnd trained(const TrialSpec& spec, double norm_factor = 1, double noise = 0) {
    TrialEnd end = completed(100.0 * static_cast<double>(stage_of(spec)));
    for (int step = 0; step < 6; ++step) {
      const double off = 1 + noise * static_cast<double>(spec.id % 7) / 7;
      end.curve.losses.emplace_back(off * 4 * std::exp(-0.1 * step));
      end.curve.grad_norms.emplace_back(off * norm_factor * (9 - step));
    }
    return end;
  }
  // A session that runs with this answer, and its result.
  StudyResult run(Session& session, std::function<TrialEnd(const TrialSpec&)> answer) {
    session.runner.answer = std::move(answer);
    return session.run_new();
  }
  static std::vector<std::string> phases(const Session& session) {
    std::vector<std::string> lines;
    for (const Trial& trial : session.trials()) {
      const std::string phase = trial.phase == Phase::twin ? "twin" : trial.phase == Phase::baseline ? "own" : "other";
      lines.push_back(fmt::format("{} stage {} micro batch {} {}", phase, config::zero_stage(trial.record.config),
                                  micro_batch(trial.record.config), to_string(*trial.record.outcome)));
    }
    return lines;
  }
  static std::string summary(const Session& session) { return read_text(session.plan.dir / "summary.txt"); }
};

TEST_F(GuardStudyTest, ABestThatAgreesIsHandedBackAndTheSummarySaysSo) {
  Session session(plan_of(guarded()));
  const StudyResult result = run(session, [](const TrialSpec& spec) { return trained(spec, 1, 1e-4); });
  EXPECT_EQ(config::zero_stage(result.best->config), 3);
  EXPECT_THAT(phases(session), Contains("twin stage 3 micro batch 4 completed"));
  EXPECT_THAT(phases(session), Contains("twin stage 1 micro batch 4 completed")) << "the own a second time";
  EXPECT_EQ(result.check->state, TwinCheck::State::agrees);
  EXPECT_THAT(summary(session), HasSubstr("checked: its keys at your own batch"));
  const auto record = read_study(session.plan.dir);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(to_json(record.value())["trials"][0]["curve"]["losses"].size(), 6u);
}

// A third of the true gradients, as one version computes them at one stage. The batch hides it in the trial.
TEST_F(GuardStudyTest, TheRunnerUpFollowsWithATwinOfItsOwn) {
  Session session(plan_of(guarded()));
  const StudyResult result =
      run(session, [](const TrialSpec& spec) { return trained(spec, stage_of(spec) == 3 ? 0.5 : 1); });
  EXPECT_EQ(config::zero_stage(result.best->config), 2);
  EXPECT_THAT(phases(session), Contains("twin stage 3 micro batch 4 diverged"));
  EXPECT_THAT(phases(session), Contains("twin stage 2 micro batch 4 completed"));
  EXPECT_THAT(summary(session), AllOf(HasSubstr("diverged: twin: the keys of trial 3 at your own batch (trial"),
                                      HasSubstr("the gradient norm is 4.5 in place of 9 at step 1")));
  EXPECT_EQ(read_text(session.plan.dir / "best_ds_config.json").find("\"stage\": 3"), std::string::npos);
}

TEST_F(GuardStudyTest, WhereAllDivergeYourOwnIsHandedBack) {
  Session session(plan_of(guarded()));
  const StudyResult result =
      run(session, [](const TrialSpec& spec) { return trained(spec, stage_of(spec) > 1 ? 0.6 : 1); });
  EXPECT_EQ(config::zero_stage(result.best->config), 1);
  EXPECT_EQ(result.check->state, TwinCheck::State::own);
}

TEST_F(GuardStudyTest, ATrialShowsWhatNeedsNoTwin) {
  const double nan = std::nan("");
  std::map<std::string, std::function<void(TrialEnd&)>> faults{
      {"the loss is nan at step 6", [&](TrialEnd& end) { end.curve.losses[5] = nan; }},
      {"the gradient norm is inf at step 2", [&](TrialEnd& end) { end.curve.grad_norms[1] = HUGE_VAL; }},
      {"the loss stays at 4",
       [&](TrialEnd& end) {
         for (auto& loss : end.curve.losses) loss = 4.0;
       }},
      {"the gradient norm is 72 in place of 9", [&](TrialEnd& end) {
         for (auto& norm : end.curve.grad_norms) *norm *= 8;
       }}};
  for (const auto& [reason, fault] : faults) {
    fs::remove_all(dir() / "run");
    Session session(plan_of(guarded()));
    const StudyResult result = run(session, [&, &fault = fault](const TrialSpec& spec) {
      TrialEnd end = trained(spec);
      if (stage_of(spec) == 3) fault(end);
      return end;
    });
    EXPECT_EQ(config::zero_stage(result.best->config), 2) << reason;
    EXPECT_THAT(session.deliveries(), Contains("exit 3 diverged")) << reason;
    EXPECT_THAT(session.trials()[3].record.reason, HasSubstr(reason));
    EXPECT_EQ(result.counts.at(Outcome::diverged), 1);
  }
}

TEST_F(GuardStudyTest, AnOwnLossOfNanIsOneLineAndHeldAgainstNobody) {
  Session session(plan_of(guarded()));
  const StudyResult result = run(session, [](const TrialSpec& spec) {
    TrialEnd end = trained(spec);
    end.curve.losses[1] = std::nan("");
    return end;
  });
  EXPECT_EQ(config::zero_stage(result.best->config), 3);
  EXPECT_TRUE(session.observer.logged("the loss is nan at step 2 of your own configuration (trial 0)"));
  EXPECT_THAT(phases(session), Not(Contains(HasSubstr("diverged"))));
}

TEST_F(GuardStudyTest, ARandomLossIsComparedWithNothingAndTheSummarySaysWhy) {
  Session session(plan_of(guarded()));
  int run_of = 0;
  const StudyResult result = run(session, [&](const TrialSpec& spec) {
    TrialEnd end = trained(spec);
    const double factor = ++run_of % 2 == 0 ? 0.7 : 1.4;
    for (auto* values : {&end.curve.losses, &end.curve.grad_norms}) {
      for (auto& value : *values) *value *= factor;
    }
    return end;
  });
  ASSERT_TRUE(result.best);
  EXPECT_THAT(phases(session), Not(Contains(HasSubstr("diverged"))));
}

TEST_F(GuardStudyTest, NothingReportedIsOneLine) {
  Session session(plan_of(guarded()));
  const StudyResult result = run(session, [](const TrialSpec& spec) {
    TrialEnd end = trained(spec);
    end.curve = {};
    return end;
  });
  EXPECT_EQ(config::zero_stage(result.best->config), 3);
  EXPECT_THAT(phases(session), Not(Contains(testing::StartsWith("twin"))));
  EXPECT_THAT(summary(session), HasSubstr("not checked against your own configuration: nothing reports a loss"));
}

TEST_F(GuardStudyTest, NoTwinIsInTheSummary) {
  StudyOptions given = guarded();
  given.twin = false;
  Session session(plan_of(given));
  run(session, [](const TrialSpec& spec) { return trained(spec); });
  EXPECT_THAT(phases(session), Not(Contains(testing::StartsWith("twin"))));
  EXPECT_THAT(summary(session), HasSubstr("not checked against your own configuration: --no-twin"));
}

// Stage 3 cannot hold the own micro batch of 4 at once, but two of 2.
TEST_F(GuardStudyTest, AnOwnBatchThatDoesNotFitIsAccumulated) {
  const Json script{{"start", {try_stage(2, 8), try_stage(3, 2)}}, {"exit 2", {{{"finish", "enough"}}}}};
  Session session(plan_of(guarded(script)));
  const StudyResult result = run(session, [](const TrialSpec& spec) {
    if (stage_of(spec) == 3 && micro_batch(spec.config) > 2)
      return failed(Outcome::out_of_memory, "CUDA out of memory");
    return trained(spec);
  });
  EXPECT_EQ(config::zero_stage(result.best->config), 3);
  EXPECT_THAT(phases(session), Contains("twin stage 3 micro batch 2 completed"));
  EXPECT_EQ(result.check->state, TwinCheck::State::agrees);
}

TEST_F(GuardStudyTest, TwoDivergencesOfAStageMakeItACulprit) {
  const Json script{{"start", {try_stage(1, 8), try_stage(2, 1), try_stage(2, 8), try_stage(3, 1)}},
                    {"exit 3", {try_stage(2, 16)}},
                    {"exit 4", {{{"finish", "enough"}}}}};
  Session session(plan_of(guarded(script)));
  run(session, [](const TrialSpec& spec) { return trained(spec, stage_of(spec) == 2 ? 20 : 1); });
  EXPECT_TRUE(session.observer.logged("zero_optimization.stage 2"));
  bool is_refused = false;
  for (const Trial& trial : session.trials()) {
    is_refused |= trial.record.outcome == Outcome::invalid_config && config::zero_stage(trial.record.config) == 2;
  }
  EXPECT_TRUE(is_refused);
}

TEST_F(GuardStudyTest, AStudyInterruptedBeforeItsTwinResumesInIt) {
  const Plan plan = plan_of(guarded());
  const auto answer = [](const TrialSpec& spec) { return trained(spec, stage_of(spec) == 3 ? 0.5 : 1); };
  std::vector<std::string> whole;
  {
    Session session(plan);
    run(session, answer);
    whole = phases(session);
  }
  for (size_t stop_after = 1; stop_after < whole.size(); ++stop_after) {
    fs::remove_all(dir() / "run");
    {
      Session first(plan);
      first.runner.answer = [&](const TrialSpec& spec) {
        if (spec.id == stop_after) first.request_stop();
        return answer(spec);
      };
      first.run_new();
    }
    Session second(resumed_plan(plan.dir));
    second.runner.answer = answer;
    const StudyResult result = second.resume();
    EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
    EXPECT_EQ(phases(second), whole) << "stopped at trial " << stop_after;
    EXPECT_EQ(config::zero_stage(result.best->config), 2);
  }
}

}  // namespace
}  // namespace dsat::host
