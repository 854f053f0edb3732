// Names of experiments as DeepSpeed forms them, and its table of the best by stage.
#include "deepspeed/experiment_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deepspeed/summary.h"

namespace dsat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

host::TrialRecord trial(uint64_t id, const char* overrides, std::optional<double> throughput = 10) {
  host::TrialRecord record;
  record.id = id;
  record.overrides = Json::parse(overrides);
  record.config = record.overrides;
  record.attempt = 1;
  record.outcome = throughput ? host::Outcome::completed : host::Outcome::out_of_memory;
  if (throughput) record.metrics = {{"throughput", *throughput}};
  record.started_at = "2026-01-01T00:00:0" + std::to_string(id) + ".000000Z";
  record.ended_at = "2026-01-01T01:02:0" + std::to_string(id) + ".250000Z";
  return record;
}

TEST(ExperimentName, HasStageAccumulationAndMicroBatch) {
  EXPECT_EQ(experiment_name(trial(0, R"({"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 3,
                                         "gradient_accumulation_steps": 2})")),
            "z1_gas2_tmbspg3");
  EXPECT_EQ(experiment_name(trial(0, R"({"autotuning": {"model_info": {"profile": true}}})")), "profile_model_info");
}

TEST(ExperimentName, HasFurtherKeysByTheirInitials) {
  EXPECT_EQ(experiment_name(trial(0, R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000,
                                         "overlap_comm": true, "reduce_scatter": false,
                                         "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "none"}},
                                         "train_micro_batch_size_per_gpu": 4})")),
            "z2_gas1_tmbspg4_rbs5.0e+08_ocT_rsF_oodcpu_opdnone");
  EXPECT_EQ(experiment_name(trial(0, R"({"zero_optimization": {"reduce_bucket_size": 123456789}})")),
            "z0_gas1_tmbspg1_rbs123456789")
      << "what an exponent would round is written in full";
}

TEST(ExperimentNames, AreUnique) {
  ExperimentNames names;
  const auto first = trial(3, R"({"zero_optimization": {"stage": 1}})"), second = trial(5, R"({"a": {}})");
  EXPECT_EQ(names.name(first), "z1_gas1_tmbspg1");
  EXPECT_EQ(names.name(second), "z0_gas1_tmbspg1");
  EXPECT_EQ(names.name(trial(7, R"({"zero_optimization": {"stage": 1}})")), "z1_gas1_tmbspg1_7");
  EXPECT_EQ(names.name(first), "z1_gas1_tmbspg1") << "a trial keeps its name";
}

// A raised limit takes the repeats at a study's end back: their ids go to other trials.
TEST(ExperimentNames, AnIdThatGoesToAnotherTrialGetsItsName) {
  ExperimentNames names;
  const auto first = trial(3, R"({"zero_optimization": {"stage": 1}})");
  auto repeat = first, other = trial(4, R"({"zero_optimization": {"stage": 2}})");
  repeat.id = 4;
  names.name(first);
  EXPECT_EQ(names.name(repeat), "z1_gas1_tmbspg1_4");
  names.name(trial(5, R"({"zero_optimization": {"stage": 2}})"));
  EXPECT_THAT(names.forget_others(repeat), IsEmpty()) << "it is the same trial";
  EXPECT_THAT(names.forget_others(trial(9, "{}")), IsEmpty()) << "it has no name yet";
  EXPECT_THAT(names.forget_others(other), ElementsAre("z1_gas1_tmbspg1_4", "z2_gas1_tmbspg1"));
  EXPECT_EQ(names.name(other), "z2_gas1_tmbspg1");
  EXPECT_EQ(names.name(first), "z1_gas1_tmbspg1");
}

TEST(Summary, IsATableOfStagesWithTheBestOfAll) {
  host::StudyRecord study;
  study.study = {{"metric", "throughput"}, {"direction", "maximize"}};
  study.trials = {
      trial(0, R"({"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 2})", 59.0229),
      trial(1, R"({"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 3})", 87.30174),
      trial(2, R"({"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 3})", std::nullopt)};
  study.trials.push_back(trial(3, "{}"));
  study.trials.back().duplicate_of = 0;
  study.best = host::BestRecord{1, Json::object(), Json::object(), 87.30174, ""};
  ExperimentNames names;
  EXPECT_EQ(deepspeed_summary(study, names),
            "| tuning_space   |   num_experiments |   best_metric_val | best_exp_name   |\n"
            "|:---------------|------------------:|------------------:|:----------------|\n"
            "| z1             |                 2 |           87.3017 | z1_gas1_tmbspg3 |\n"
            "| z3             |                 1 |            0      | z3_gas1_tmbspg3 |\n"
            "| global         |                 3 |           87.3017 | z1_gas1_tmbspg3 |\n"
            "\n"
            "Tuning completed in 1:02:03.250000. Total number of experiments: 3.\n");
}

TEST(Summary, TheTimeLeavesOutThePauseBeforeAResume) {
  host::StudyRecord study;
  study.study = Json::object();
  study.trials = {trial(0, "{}"), trial(1, "{}"), trial(2, "{}"), trial(3, "{}")};
  study.trials[0].ended_at = "2026-01-01T00:10:00.000000Z";
  study.trials[1].ended_at = "2026-01-01T00:09:00.000000Z";
  study.trials[2].submitted_at = "2026-01-01T00:10:00.000000Z";
  study.trials[2].started_at = "2026-01-03T12:00:00.000000Z";
  study.trials[2].ended_at = "2026-01-03T12:05:00.000000Z";
  study.trials[3].started_at.clear();  // a crash cost it its start
  study.trials[3].ended_at = "2026-01-03T12:06:00.000000Z";
  ExperimentNames names;
  EXPECT_THAT(deepspeed_summary(study, names), HasSubstr("Tuning completed in 0:15:00.000000."));
}

}  // namespace
}  // namespace dsat::cli
