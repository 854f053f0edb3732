// What an experiment becomes as a study's options, and which of the command line's values stay.
#include "determined/apply_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/study_options.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;

// The options of a study of this experiment, with those words on the command line.
host::StudyOptions applied(const Experiment& experiment, const Tokens& words = {},
                           const std::vector<std::filesystem::path>& includes = {}) {
  OptionSet set;
  for (const std::string& name : setting_option_names()) set.add(setting_option(name));
  const Values values(set, split(set, words, Grammar::command).options);
  host::StudyOptions options = study_options(values);
  ExperimentRequest request;
  request.file = "/here/e.yaml";
  request.model_dir = "/here/model";
  request.includes = includes;
  apply_experiment(experiment, request, values, options);
  return options;
}

TEST(ApplyExperiment, FillsTheOptionsOfAStudy) {
  Experiment experiment;
  experiment.name = "mine";
  experiment.slots_per_trial = 2;
  experiment.max_slots = 4;
  experiment.metric = "latency";
  const host::StudyOptions options = applied(experiment);
  EXPECT_EQ(options.name, "mine");
  EXPECT_EQ(options.cwd, "/here/model");
  EXPECT_TRUE(options.config_by_environment);
  EXPECT_EQ(options.slots_per_trial, 2);
  EXPECT_EQ(options.max_slots, 4);
  EXPECT_EQ(options.metric, "latency");
  EXPECT_EQ(options.trial_cwd, host::TrialCwd::copy);
}

TEST(ApplyExperiment, TheCommandLineBeatsTheFile) {
  Experiment experiment;
  experiment.slots_per_trial = 2;
  experiment.max_slots = 4;
  experiment.metric = "latency";
  const host::StudyOptions options =
      applied(experiment, {"--max-slots=2", "--num-gpus=1,2", "--metric=throughput", "--trial-cwd=keep"});
  EXPECT_EQ(options.max_slots, 2);
  EXPECT_EQ(options.slots_per_trial, std::nullopt) << "sizes of the command line need no slots of the file";
  EXPECT_EQ(options.metric, "throughput");
  EXPECT_EQ(options.trial_cwd, host::TrialCwd::keep);
}

TEST(ApplyExperiment, TheScriptReadsTheSlotsThatItHas) {
  Experiment experiment;
  experiment.slots_per_trial = 2;
  experiment.document = Json{{"resources", {{"slots_per_trial", 2}, {"priority", 1}}}};
  const Json document = applied(experiment, {"--slots-per-trial=4"}).experiment;
  EXPECT_EQ(document, Json::parse(R"({"resources": {"slots_per_trial": 4, "priority": 1}})"));
}

TEST(ApplyExperiment, AFileWithoutNamesKeepsTheDefaults) {
  const host::StudyOptions options = applied({});
  EXPECT_EQ(options.name, "e");
  EXPECT_EQ(options.metric, host::StudyOptions().metric);
}

TEST(ApplyExperiment, IncludedFilesNeedACopy) {
  EXPECT_THAT(error_of([] { applied({}, {"--trial-cwd=keep"}, {"more"}); }), HasSubstr("--trial-cwd keep"));
  EXPECT_EQ(applied({}, {"--trial-cwd=keep"}).trial_cwd, host::TrialCwd::keep);
}

}  // namespace
}  // namespace dsat::cli
