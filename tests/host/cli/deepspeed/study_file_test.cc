// What lies in results_dir: this very study, another one of dsat's, or results of somebody else.
#include "deepspeed/study_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// One folder of results, and studies in run directories of their own.
class DeepspeedStudyFile : public ::testing::Test {
 protected:
  DeepspeedStudy study_in(const fs::path& dir, const Json& options = Json::array()) const {
    return {dir, results(), folder() / "exps", false, Json{{"options", options}}};
  }
  const fs::path& folder() const { return folder_.path(); }
  fs::path results() const { return folder() / "results"; }
  fs::path other() const { return folder() / "other"; }
  // An experiment that the study in `dir` left, or one of DeepSpeed's own.
  void write_experiment(const Json& description) const {
    fs::create_directories(results() / "z1_gas1_tmbspg1");
    write_text(results() / "z1_gas1_tmbspg1/exp.json", description.dump());
  }
  void make_study(const DeepspeedStudy& study) const {
    fs::create_directories(study.dir);
    write_text(study.dir / "dsat.db", "");
    write_deepspeed_study(study);
    write_experiment({{"trial_dir", (study.dir / "trials/3").string()}});
  }
  std::string refusal() const {
    return error_of([&] { existing_results(study_in(folder() / "new")); });
  }

 private:
  TempDir folder_;
};

TEST_F(DeepspeedStudyFile, AFolderWithoutResultsTakesAStudy) {
  EXPECT_EQ(existing_results(study_in(other())), ExistingResults::none);
  fs::create_directories(results() / "notes");
  EXPECT_EQ(existing_results(study_in(other())), ExistingResults::none);
}

TEST_F(DeepspeedStudyFile, ResultsOfAStudyElsewhereNameIt) {
  make_study(study_in(other(), {"--num-gpus=1", "--output-dir=other"}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr(results().string() + " holds results"),
                               HasSubstr("the study in " + other().string()), HasSubstr("type --output-dir=other")));
}

TEST_F(DeepspeedStudyFile, ResultsOfAStudyAtItsUsualPlaceNameIt) {
  make_study(study_in(results() / kDeepspeedRunDir));
  EXPECT_THAT(refusal(), HasSubstr("leave --output-dir out"));
}

TEST_F(DeepspeedStudyFile, ResultsWithoutAStudyAreNotOurs) {
  for (const Json& description : {Json{{"name", "z1"}}, Json{{"trial_dir", 3}}, Json::array(),
                                  Json{{"trial_dir", (other() / "trials/3").string()}}}) {
    write_experiment(description);
    EXPECT_THAT(refusal(), HasSubstr("\"overwrite\": true")) << description;
  }
}

TEST_F(DeepspeedStudyFile, OneFileThatDeepspeedsTunerWritesIsAResult) {
  for (const char* file : {"summary.txt", "ds_config_optimal.json", "cmd_optimal.txt", "profile_model_info"}) {
    fs::create_directories(results());
    write_text(results() / file, "");
    EXPECT_THAT(refusal(), HasSubstr("\"overwrite\": true")) << file;
    fs::remove_all(results());
  }
}

TEST_F(DeepspeedStudyFile, AStudyThatHasLostItsJournalIsNotNamed) {
  make_study(study_in(folder() / "new"));
  fs::remove(folder() / "new/dsat.db");
  EXPECT_THAT(refusal(), HasSubstr("\"overwrite\": true"));
}

}  // namespace
}  // namespace dsat::cli
