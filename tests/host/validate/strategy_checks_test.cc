// What a searcher is put through before it is trusted: the study at practice, and the checks on strategies that are
// sound or fail.
#include "validate/strategy_checks.h"

#include "host/study/study_fixture.h"
#include "support/error_of.h"
#include "validate/practice.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::StartsWith;

class StrategyChecksTest : public StudyTest {
 protected:
  CheckContext context(const std::string& plugin) {
    const fs::path file = fixture_plugin(plugin);
    return {file, find_strategy(file.string(), PluginKind::searcher, in_this_process()).value(),
            [](const std::string&) {}};
  }
  // A strategy of the library unfit.
  CheckContext unfit(const std::string& name) {
    const fs::path file = fixture_plugin("unfit");
    const std::vector<PluginInfo> all = describe_plugin(file, in_this_process()).value();
    const auto found = std::find_if(all.begin(), all.end(), [&](const PluginInfo& info) { return info.name == name; });
    if (found == all.end()) throw Error("unfit has no " + name);
    return {file, *found, [](const std::string&) {}};
  }
};

TEST_F(StrategyChecksTest, ASoundSearcherPasses) {
  const CheckContext sound = context("defective");  // with its default, which is no defect
  for (const auto check :
       {check_life, check_determinism, check_state, check_damaged_state, check_outcomes, check_limits}) {
    const CheckOutcome outcome = check(sound);
    EXPECT_EQ(outcome.status, CheckStatus::passed) << outcome.reason;
  }
}

// The time that a plugin has is that of one call, and a check makes many.
TEST_F(StrategyChecksTest, EveryCallIsAnnounced) {
  CheckContext sound = context("defective");
  std::vector<std::string> steps;
  sound.doing = [&](const std::string& what) { steps.push_back(what); };
  check_determinism(sound);
  EXPECT_THAT(steps.front(), HasSubstr("study twice"));
  EXPECT_EQ(std::count(steps.begin(), steps.end(), ""), 2 * (1 + 4)) << "two studies: a start, and four trials";
}

TEST_F(StrategyChecksTest, OneThatFailsAtATrialsResultIsFoundByEachStudyThatItWorksThrough) {
  const CheckContext failing = context("defective_failing");
  for (const auto check : {check_life, check_determinism, check_limits}) {
    EXPECT_THAT(error_of([&] { check(failing); }), HasSubstr("the moon is wrong"));
  }
}

TEST_F(StrategyChecksTest, ConfigurationsThatAStudyWouldRefuseAreCountedAndTheFirstReasonIsNamed) {
  const CheckOutcome outcome = check_life(unfit("misspeller"));
  EXPECT_EQ(outcome.status, CheckStatus::warned);
  EXPECT_THAT(outcome.reason, AllOf(StartsWith("4 of 5 configurations"), HasSubstr("'zero_optimization.stage'")));
}

TEST_F(StrategyChecksTest, AnOpFromAnotherThreadIsFoundEvenIfTheStrategyGoesOn) {
  const CheckOutcome outcome = check_life(unfit("stray"));
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("create_trial"), HasSubstr("another thread")));
}

TEST_F(StrategyChecksTest, AProfileThatAStudyWouldRefuseHasFailed) {
  const CheckOutcome outcome = check_life(unfit("guesser"));
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("profile"), HasSubstr("activation_bytes_per_sample: 5")));
}

TEST_F(StrategyChecksTest, AStateIsSoundWhateverWasStoppedAndHoweverSoonItFinished) {
  for (const char* plugin : {"racer", "racer_done"}) {
    const CheckOutcome outcome = check_state(context(plugin));
    EXPECT_EQ(outcome.status, CheckStatus::passed) << plugin << ": " << outcome.reason;
    EXPECT_EQ(outcome.reason, "") << plugin;
  }
}

TEST_F(StrategyChecksTest, AStateThatLacksSomethingIsFoundAndShownWhereTheRunsPart) {
  const CheckOutcome outcome = check_state(context("racer_forgetful"));
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("after 10 trials"));
  EXPECT_THAT(outcome.reason, HasSubstr("races over: 3 and ..."));
  EXPECT_THAT(outcome.reason, HasSubstr("races over: 1"));
}

TEST_F(StrategyChecksTest, AStateThatCannotBeSavedIsFound) {
  const CheckOutcome outcome = check_state(context("racer_unsaved"));
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("the attic is full"));
}

// The host restores what was saved, be it nothing.
TEST_F(StrategyChecksTest, AStateWithoutAByteIsAState) {
  const CheckOutcome outcome = check_state(context("racer_speechless"));
  EXPECT_EQ(outcome.status, CheckStatus::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("differently"));
  EXPECT_EQ(check_damaged_state(context("racer_speechless")).status, CheckStatus::passed);
}

testing::Trial trial_of(int stage, int64_t micro_batch) {
  testing::Trial trial;
  trial.config = {{"train_micro_batch_size_per_gpu", micro_batch}, {"zero_optimization", {{"stage", stage}}}};
  return trial;
}

TEST(Practice, MemoryEndsLaterAtHigherStages) {
  EXPECT_EQ(practice_answer(trial_of(0, 20)).outcome, dsat::Outcome::completed);
  EXPECT_EQ(practice_answer(trial_of(0, 21)).outcome, dsat::Outcome::out_of_memory);
  EXPECT_EQ(practice_answer(trial_of(3, 35)).outcome, dsat::Outcome::completed);
  EXPECT_EQ(practice_answer(trial_of(3, 36)).outcome, dsat::Outcome::out_of_memory);
}

TEST(Practice, AConfigurationIsRefusedWhereAStudyRefusesIt) {
  PluginInfo plugin;
  plugin.study = Json::object();
  const dsat::Study study = practice_study(plugin, 10, 2);
  const auto why = [&](const std::string& overrides) { return why_refused(study, Json::parse(overrides)); };
  EXPECT_EQ(why("{}"), "");
  EXPECT_EQ(why(R"({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 2}})"), "");
  EXPECT_EQ(why(R"({"autotuning": {"model_info": {"profile": true}}})"), "");
  EXPECT_THAT(why(R"({"zero_optimisation": {"stage": 2}})"), HasSubstr("zero_optimisation"));
  for (const char* overrides : {
           R"({"zero_optimization.stage": 2})",
           R"({"zero_optimization": {"stage": 7}})",
           R"({"train_micro_batch_size_per_gpu": 0})",
           R"({"train_micro_batch_size_per_gpu": "two"})",
           R"({"zero_optimization": {"stage": 1, "offload_param": {"device": "cpu"}}})",
       }) {
    EXPECT_NE(why(overrides), "") << overrides;
  }
}

TEST(Practice, AnAnswerIsFoundForWhateverIsAskedFor) {
  testing::Trial trial = trial_of(-1, -1'000'000'000'000);
  EXPECT_EQ(practice_answer(trial).outcome, dsat::Outcome::completed);
  trial.config = Json::parse(R"({"train_micro_batch_size_per_gpu": null, "zero_optimization": 3,
                                 "autotuning": {"model_info": {"profile": "yes"}}})");
  EXPECT_EQ(practice_answer(trial).outcome, dsat::Outcome::completed);
}

TEST(Practice, TroubleIsEveryOutcomeThatATrialCanHave) {
  std::set<dsat::Outcome> seen;
  for (uint64_t id = 0; id < 9; ++id) {
    testing::Trial trial = trial_of(1, 1);
    trial.id = id;
    seen.insert(troubled_answer(trial).outcome);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(dsat::Outcome::diverged) + 1);
}

}  // namespace
}  // namespace dsat::host
