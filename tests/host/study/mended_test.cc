// A study that is resumed after its script was mended: what always failed gets a new chance, and no more than that.
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;

class MendedTest : public StudyTest {
 protected:
  // Stage 2 fails until the script is mended; it is asked for twice before and twice after the interruption.
  StudyOptions with_a_culprit() {
    const auto at = [](int stage, int64_t samples) {
      Json op = try_micro_batch(samples);
      config::set(op["try"], config::kStageKey, stage);
      return op;
    };
    StudyOptions given = scripted({{"start", {at(1, 2), at(1, 3)}},
                                   {"exit 0", {at(2, 2)}},
                                   {"exit 2", {at(2, 3)}},
                                   {"exit 3", {at(1, 4)}},
                                   {"exit 4", {at(2, 4), at(2, 5), at(2, 6)}}});
    given.max_concurrent_trials = 1;
    return given;
  }
  static TrialEnd broken(const TrialSpec& spec) {
    return config::zero_stage(spec.config) == 2 ? failed(Outcome::failed, "OSError: no stage 2") : completed(100);
  }
  static void interrupt_at_trial_4(Session& session) {
    session.runner.answer = broken;
    session.runner.before_each_step = [&session] {
      if (!session.runner.started.empty() && session.runner.started.back().id == 4) session.request_stop();
    };
    session.runner.held = {4};
    EXPECT_EQ(session.run_new().status, StudyStatus::interrupted);
    session.coordinator.reset();
    session.close_journal();
  }
  static std::vector<std::string> outcomes(const std::vector<Trial>& trials) {
    std::vector<std::string> outcomes;
    for (const Trial& trial : trials) outcomes.emplace_back(to_string(*trial.record.outcome));
    return outcomes;
  }
};

TEST_F(MendedTest, AResumeGivesACulpritANewChance) {
  Session first(plan_of(with_a_culprit()));
  interrupt_at_trial_4(first);
  Session second(resumed_plan(first.plan.dir));
  second.runner.answer = [](const TrialSpec&) { return completed(100); };
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
  EXPECT_THAT(second.runner.started_ids(), ElementsAre(4, 5, 6, 7));
}

TEST_F(MendedTest, ACulpritThatWasNotMendedCostsOneMoreTrial) {
  Session first(plan_of(with_a_culprit()));
  interrupt_at_trial_4(first);
  const fs::path crash = dir() / "crash";
  Session second(resumed_plan(first.plan.dir));
  second.runner.answer = broken;
  second.runner.before_each_step = [&] {
    if (second.runner.started.size() != 2 || fs::exists(crash)) return;
    fs::create_directories(crash);
    for (const char* name : {"dsat.db", "dsat.db-wal"}) {
      if (fs::exists(first.plan.dir / name)) fs::copy_file(first.plan.dir / name, crash / name);
    }
  };
  second.resume();
  EXPECT_THAT(outcomes(second.trials()), ElementsAre("completed", "completed", "failed", "failed", "completed",
                                                     "failed", "invalid_config", "invalid_config"));
  // After a crash nothing has changed: the chance is that of the resume before.
  Session third(resumed_plan(crash));
  third.runner.answer = broken;
  third.resume();
  EXPECT_EQ(outcomes(third.trials()), outcomes(second.trials()));
}

}  // namespace
}  // namespace dsat::host
