// What becomes of a request before it costs anything: merged configurations, identities and refusals by the plan of a
// small study.
#include "study/state/admission.h"

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

class AdmissionTest : public StudyTest {
 protected:
  Plan plan(
      const std::string& config, const std::function<void(StudyOptions&)>& change = [](StudyOptions&) {}) {
    write_text(dir() / "ds_config.json", config);
    StudyOptions given = options();
    change(given);
    return plan_of(given);
  }
};

TEST_F(AdmissionTest, MergesLeafByLeafAndCompletesTheBatch) {
  const Plan p = plan(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3,
                          "zero_optimization": {"stage": 1, "overlap_comm": true}, "mine": {"a": 1}})",
                      [](StudyOptions& o) { o.slots_per_trial = 4; });
  const Admission a = admit(p, {{"train_micro_batch_size_per_gpu", 5}, {"zero_optimization", {{"stage", 2}}}});
  EXPECT_EQ(a.invalid, "");
  EXPECT_EQ(a.config["train_batch_size"], 5 * 3 * 4);
  EXPECT_EQ(a.config["zero_optimization"]["stage"], 2);
  EXPECT_EQ(a.config["zero_optimization"]["overlap_comm"], true);
  EXPECT_EQ(a.config["mine"], Json({{"a", 1}}));
}

TEST_F(AdmissionTest, AGlobalBatchFixesTheProduct) {
  const Plan p = plan("{}", [](StudyOptions& o) { o.global_batch = 24; });
  const Admission a = admit(p, {{"train_micro_batch_size_per_gpu", 6}});
  EXPECT_EQ(a.config["gradient_accumulation_steps"], 4);
  EXPECT_EQ(a.config["train_batch_size"], 24);
  EXPECT_NE(admit(p, {{"train_micro_batch_size_per_gpu", 7}}).invalid, "");
}

TEST_F(AdmissionTest, NamesTheRuleThatARequestBreaks) {
  const Plan p = plan("{}", [](StudyOptions& o) {
    o.max_micro_batch = 16;
    o.max_train_batch_size = 12;
  });
  EXPECT_THAT(admit(p, {{"train_micro_batch_size_per_gpu", 13}}).invalid, HasSubstr("--max-train-batch-size 12"));
  for (const Json& overrides : {
           Json{{"train_micro_batch_size_per_gpu", 0}},
           Json{{"train_micro_batch_size_per_gpu", 17}},
           Json{{"train_micro_batch_size_per_gpu", "many"}},
           Json{{"zero_optimization", {{"stage", 7}}}},
           Json{{"zero_optimization", {{"stage", 1}, {"offload_param", {{"device", "cpu"}}}}}},
           Json{{"zero_optimization", {{"stage", 0}, {"offload_optimizer", {{"device", "cpu"}}}}}},
           Json{{"zero_optimization", {{"stage", 2}, {"reduce_bucket_size", -1}}}},
           Json{{"pipeline", {{"stages", 2}}}, {"zero_optimization", {{"stage", 3}}}},
       }) {
    EXPECT_NE(admit(p, overrides).invalid, "") << overrides;
  }
}

std::string refused(const Plan& plan, const std::string& overrides) {
  return admit(plan, Json::parse(overrides)).invalid;
}

TEST_F(AdmissionTest, RefusesWhatDeepSpeedNeverAccepts) {
  const Plan p = plan("{}");
  EXPECT_THAT(
      refused(p, R"({"zero_optimization": {"reduce_buket_size": 1}})"),
      AllOf(HasSubstr("'zero_optimization.reduce_buket_size'"), HasSubstr("'zero_optimization.reduce_bucket_size'")));
  EXPECT_THAT(refused(p, R"({"zero_optimization.stage": 2})"),
              AllOf(HasSubstr("'zero_optimization.stage'"), HasSubstr("no dots")));
  for (const char* overrides : {
           R"({"mine.lr": 2})",
           R"({"zero_optimization": {"no_such_key": 1}})",
           R"({"zero_optimization": {"overlap_comm": "maybe"}})",
           R"({"zero_optimization": {"reduce_bucket_size": [1, 2]}})",
           R"({"zero_optimization": {"offload_optimizer.device": "cpu", "stage": 2}})",
           R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin": true}}})",
           R"({"zero_optimization": "auto"})",
           R"({"steps_per_print": 0})",
           R"({"gradient_clipping": "x"})",
           R"({"fp16": {"enbled": true}})",
       }) {
    EXPECT_NE(refused(p, overrides), "") << overrides;
  }
  EXPECT_EQ(admit(p, {{"zero_optimization", {{"no_such_key", 1}}}}).config["zero_optimization"]["no_such_key"], 1)
      << "the record shows what was asked for";
}

TEST_F(AdmissionTest, AKeyOfTheUsersOwnIsNotTheStrategysFault) {
  const Plan p = plan(R"({"my_section": {"a": 1}, "mine.lr": 1, " seed": 3})");
  EXPECT_EQ(refused(p, "{}"), "");
  EXPECT_EQ(refused(p, R"({"my_section": {"a": 2}, "mine.lr": 2, " seed": 4, "comment": "a new one"})"), "");
}

TEST_F(AdmissionTest, ReadsOverridesAsDeepSpeedDoes) {
  const Plan p = plan(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 7}})");
  const Admission a = admit(p, {{"zero_optimization", {{"prefetch_bucket_size", 5e8}, {"overlap_comm", "yes"}}}});
  EXPECT_EQ(a.invalid, "");
  EXPECT_EQ(a.config["zero_optimization"]["stage3_prefetch_bucket_size"], 500000000);
  EXPECT_FALSE(a.config["zero_optimization"].contains("prefetch_bucket_size"));
  EXPECT_EQ(a.config["zero_optimization"]["overlap_comm"], true);
}

TEST_F(AdmissionTest, IdentityIsWhatIsRunNotHowItWasAsked) {
  const Plan p = plan(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 5e8}})");
  const std::string base = admit(p, Json::object()).identity;
  EXPECT_EQ(admit(p, {{"zero_optimization", {{"reduce_bucket_size", 500000000}}}}).identity, base);
  EXPECT_EQ(admit(p, {{"train_micro_batch_size_per_gpu", 1}}).identity, base);
  EXPECT_NE(admit(p, {{"train_micro_batch_size_per_gpu", 2}}).identity, base);
}

TEST_F(AdmissionTest, AModelInformationRunIsAnotherTrialThanAMeasuredOne) {
  const Plan p = plan("{}");
  const Admission info = admit(p, {{"autotuning", {{"model_info", {{"profile", true}}}}}});
  EXPECT_TRUE(info.model_info);
  EXPECT_FALSE(info.config.contains("autotuning"));
  EXPECT_NE(info.identity, admit(p, Json::object()).identity);
  EXPECT_FALSE(admit(p, {{"autotuning", {{"model_info", {{"profile", "yes"}}}}}}).model_info);
}

TEST_F(AdmissionTest, TheUsersAutotuningKeysGoToTheTrialAndNowhereElse) {
  const Plan p = plan(R"({"autotuning": {"fast": false, "tuner_type": "random"}})");
  const Admission a = admit(p, Json::object());
  EXPECT_FALSE(a.config.contains("autotuning"));
  EXPECT_EQ(config_to_run(p, a.config)["autotuning"]["tuner_type"], "random");
}

}  // namespace
}  // namespace dsat::host
