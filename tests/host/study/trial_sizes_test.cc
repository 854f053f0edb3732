// Studies whose trials differ in size: plan, admission, and the turn that packs them.
#include "host/study/study_fixture.h"
#include "study/state/admission.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;

Json try_gpus(int gpus, int micro_batch = 1) {
  return {{"try", {{config::kMicroBatchKey, micro_batch}, {"autotuning", {{"num_gpus", gpus}}}}}};
}

class TrialSizesTest : public StudyTest {
 protected:
  StudyOptions sized(const Json& script = Json::object()) {
    StudyOptions options = scripted(script);
    options.command = {"/bin/true", "--ranks", "2", "--deepspeed_config", (dir() / "ds_config.json").string()};
    options.slots = 4;
    options.slots_per_trial.reset();
    options.num_gpus = {2, 4};
    return options;
  }
};

TEST_F(TrialSizesTest, BatchSizesFollowTheSizeOfEachTrial) {
  const Plan plan = plan_of(sized());
  EXPECT_EQ(plan.data_parallel_size, 2);
  EXPECT_EQ(plan.base_config["train_batch_size"], 2);
  const auto train_batch = [&](int gpus) {
    const Admission a = admit(plan, {{config::kMicroBatchKey, 3}, {"autotuning", {{"num_gpus", gpus}}}});
    EXPECT_EQ(a.invalid, "");
    return a.config["train_batch_size"].get<int>();
  };
  EXPECT_EQ(train_batch(2), 6);
  EXPECT_EQ(train_batch(4), 12);
  EXPECT_NE(admit(plan, {{"autotuning", {{"num_gpus", 8}}}}).invalid, "") << "there are 4 slots";
}

TEST_F(TrialSizesTest, AnAxisOfTheSpaceThatAnySearcherSees) {
  const Plan plan = plan_of(sized());
  for (const config::StageSpace& stage : plan.space.stages) {
    EXPECT_EQ(stage.axes.back().key, "autotuning.num_gpus") << stage.stage;
  }
}

TEST_F(TrialSizesTest, TheSectionsOwnListDoesTheSame) {
  write_text(dir() / "ds_config.json",
             R"({"train_micro_batch_size_per_gpu": 1, "autotuning": {"num_gpus": [4, 2], "fast": true}})");
  StudyOptions options = sized();
  options.num_gpus.clear();
  const Plan plan = plan_of(options);
  EXPECT_THAT(plan.slots.num_gpus, ElementsAre(4, 2));
  const Admission a = admit(plan, {{"autotuning", {{"num_gpus", 2}}}});
  EXPECT_EQ(a.config["autotuning"], Json({{"num_gpus", 2}, {"num_nodes", 1}}));
  EXPECT_EQ(config_to_run(plan, a.config)["autotuning"], Json({{"num_gpus", 2}, {"fast", true}, {"num_nodes", 1}}));
}

TEST_F(TrialSizesTest, AGlobalBatchIsDividedByEverySize) {
  StudyOptions options = sized();
  options.global_batch = 24;
  const Plan plan = plan_of(options);
  EXPECT_EQ(plan.space.micro_batch_divides, 6);
  EXPECT_EQ(admit(plan, {{config::kMicroBatchKey, 3}}).config["gradient_accumulation_steps"], 4);
  options.global_batch = 6;
  EXPECT_THAT(error_of([&] { make_plan(options); }), AllOf(HasSubstr("--global-batch 6"), HasSubstr("multiple")));
}

TEST_F(TrialSizesTest, SizesThatTheCommandDoesNotTakeAreRefused) {
  StudyOptions options = sized();
  options.command = {"/bin/true", "--deepspeed_config", (dir() / "ds_config.json").string()};
  EXPECT_THAT(error_of([&] { make_plan(options); }), AllOf(HasSubstr("num_gpus"), HasSubstr("several sizes")));
  options.num_gpus = {2};
  EXPECT_NO_THROW(make_plan(options)) << "one size is that of the slots";
}

TEST_F(TrialSizesTest, ASearcherSeesTheBoundOfTheTrainBatch) {
  StudyOptions options = sized();
  const auto space = [&] { return description_for_search(plan_of(options)).at("space"); };
  EXPECT_FALSE(space().contains("max_train_batch_size"));
  options.max_train_batch_size = 12;
  EXPECT_EQ(space().at("max_train_batch_size"), 12);
}

TEST_F(TrialSizesTest, ASectionThatIsWrongIsRefused) {
  for (const char* value : {"\"two\"", "0", "[]", "[2, 0]", "-1", "2.5", "[[2]]"}) {
    write_text(dir() / "ds_config.json", std::string(R"({"autotuning": {"num_gpus": )") + value + "}}");
    StudyOptions options = sized();
    options.num_gpus.clear();
    EXPECT_THAT(error_of([&] { make_plan(options); }), HasSubstr("autotuning.num_gpus is ")) << value;
  }
}

TEST_F(TrialSizesTest, APlanSurvivesTheJournal) {
  const Plan plan = plan_of(sized());
  const Plan again = plan_from_json(to_json(plan));
  EXPECT_EQ(to_json(again), to_json(plan));
  EXPECT_EQ(again.shape_of(Json({{"autotuning", {{"num_gpus", 4}, {"num_nodes", 1}}}})), TrialShape::even(1, 4));
}

TEST_F(TrialSizesTest, TheBestFilesHaveNoWorldAndTheTrialsDo) {
  Session session(plan_of(sized({{"start", {try_gpus(4, 7)}}})));
  const StudyResult result = session.run_new();
  ASSERT_TRUE(result.best.has_value()) << result.reason;
  EXPECT_FALSE(result.best->config.contains("autotuning"));
  EXPECT_EQ(result.best->config["train_batch_size"], 28);
  EXPECT_EQ(session.trials().back().record.config["autotuning"]["num_gpus"], 4);
}

TEST_F(TrialSizesTest, AProfileTrialOfAnotherSizeThanItWasGivenEndsTheStudy) {
  StudyOptions options = sized();
  options.profiler.options["script"] =
      Json{{"start", {{{"try", {{"autotuning", {{"model_info", {{"profile", true}}}}}}}}}}}.dump();
  Session session(plan_of(options));
  session.runner.answer = [](const TrialSpec&) {
    TrialEnd end = completed(1);
    end.world_size = 1;
    return end;
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason,
              AllOf(HasSubstr("with 1 processes"), HasSubstr("num_gpus and num_nodes"), HasSubstr("for 2")));
}

}  // namespace
}  // namespace dsat::host
