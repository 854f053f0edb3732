// The end of a study on the terminal and as --json.
#include "terminal/print_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "captured.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class Report : public ::testing::Test {
 protected:
  Report() {
    result_.dir = temp_.path();
    write_text(result_.dir / "summary.txt", "stage  trials\n    1       4");
  }

  void complete() {
    result_.status = host::StudyStatus::completed;
    result_.counts = {{host::Outcome::completed, 4}, {host::Outcome::out_of_memory, 1}};
    host::BestRecord best;
    best.trial = 3;
    best.config = Json{{"train_batch_size", 16}};
    best.metrics = Json{{"latency", 1000}};
    result_.best = best;
  }

  const TempDir temp_;
  host::StudyResult result_;
  std::vector<std::string> errors_;
  Captured captured_;
};

TEST_F(Report, JsonHasAllOutcomesTheBestAndTheFilesThatAreThere) {
  complete();
  result_.metric = "latency";
  write_text(result_.dir / "best_ds_config.json", "{}");
  EXPECT_EQ(result_json(result_),
            (Json{{"status", "completed"},
                  {"reason", ""},
                  {"best", {{"trial", 3}, {"config", {{"train_batch_size", 16}}}, {"metrics", {{"latency", 1000}}}}},
                  {"trials",
                   {{"completed", 4},
                    {"out_of_memory", 1},
                    {"failed", 0},
                    {"timed_out", 0},
                    {"invalid_config", 0},
                    {"stopped", 0},
                    {"lost", 0},
                    {"diverged", 0}}},
                  {"metric", "latency"},
                  {"dir", result_.dir.string()},
                  {"files",
                   {{"configuration", (result_.dir / "best_ds_config.json").string()},
                    {"metrics", nullptr},
                    {"command", nullptr},
                    {"report", nullptr}}}}));
}

TEST_F(Report, JsonHasTheGainWhereOneWasMeasured) {
  complete();
  EXPECT_FALSE(result_json(result_).contains("gain"));
  result_.gain = host::Gain{3.1, 2.9, {}, 4};
  result_.gain->of_best = {62, 2};
  result_.gain->of_own = {20, 1};
  result_.gain->left_out = 1;
  EXPECT_EQ(result_json(result_).at("gain"), (Json{{"ratio", 3.1},
                                                   {"low", 2.9},
                                                   {"high", nullptr},
                                                   {"baseline", 4},
                                                   {"of_best", {{"value", 62.0}, {"measurements", 2}}},
                                                   {"of_own", {{"value", 20.0}, {"measurements", 1}}},
                                                   {"left_out", 1}}));
}

TEST_F(Report, JsonHasNullWithoutABest) {
  result_.status = host::StudyStatus::no_best;
  result_.reason = "every trial failed";
  const Json json = result_json(result_);
  EXPECT_EQ(json["status"], "no_best");
  EXPECT_EQ(json["reason"], "every trial failed");
  EXPECT_TRUE(json["best"].is_null());
}

TEST_F(Report, EndsWithSummaryBestConfigurationAndPlaces) {
  complete();
  print_result(result_, errors_, captured_.console);
  EXPECT_THAT(captured_.out(), HasSubstr("stage  trials\n    1       4\n"));
  EXPECT_THAT(captured_.out(), HasSubstr("(trial 3):\n{\n  \"train_batch_size\": 16\n}\n"));
  EXPECT_THAT(captured_.out(), HasSubstr((result_.dir / "best_ds_config.json").string()));
  EXPECT_EQ(captured_.err(), "");
}

TEST_F(Report, SaysOnceWhyTheBestIsNotTheLuckiest) {
  complete();
  result_.best->why = "trial 7 was faster once, but slower on average";
  write_text(result_.dir / "summary.txt", "note: " + result_.best->why + "\n");
  print_result(result_, errors_, captured_.console);
  const std::string text = captured_.out();
  const size_t at = text.find(result_.best->why);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find(result_.best->why, at + 1), std::string::npos) << "the summary has it";
}

TEST_F(Report, AnInterruptedStudySaysHowToGoOn) {
  result_.status = host::StudyStatus::interrupted;
  print_result(result_, errors_, captured_.console);
  EXPECT_THAT(captured_.out(), HasSubstr("\ndsat-host resume " + result_.dir.string() + "\n"));
  EXPECT_THAT(captured_.err(), StartsWith("dsat-host: interrupted"));
}

TEST_F(Report, TheResumeLineHasWhatTheStudyIsToDoInTheEnd) {
  result_.status = host::StudyStatus::interrupted;
  print_result(result_, errors_, captured_.console, " --run-full-experiment");
  EXPECT_THAT(captured_.out(), HasSubstr("\ndsat-host resume " + result_.dir.string() + " --run-full-experiment\n"));
}

TEST_F(Report, TheResumeLineCanBePastedWhateverTheFolderIsCalled) {
  result_.status = host::StudyStatus::interrupted;
  result_.dir = "/tmp/my study's";
  print_result(result_, errors_, captured_.console);
  EXPECT_THAT(captured_.out(), HasSubstr("\ndsat-host resume '/tmp/my study'\\''s'\n"));
}

TEST_F(Report, AStudyWithoutABestSaysWhyFirst) {
  result_.status = host::StudyStatus::no_best;
  result_.reason = "the profile trial failed";
  errors_ = {"  Traceback (most recent call last):", "  NameError: name 'lodaer' is not defined"};
  print_result(result_, errors_, captured_.console);
  EXPECT_EQ(captured_.err(),
            "dsat-host: no best configuration: the profile trial failed\n"
            "  Traceback (most recent call last):\n"
            "  NameError: name 'lodaer' is not defined\n");
  EXPECT_THAT(captured_.out(), Not(HasSubstr("best_ds_config.json")));
}

TEST_F(Report, ASearchThatEndsEarlyAgreesThatThereIsABest) {
  complete();
  result_.status = host::StudyStatus::no_best;
  result_.reason = "the profile trial failed";
  print_result(result_, errors_, captured_.console);
  EXPECT_THAT(captured_.err(), AllOf(HasSubstr("ended early"), HasSubstr("profile trial")));
  EXPECT_THAT(captured_.out(), HasSubstr("configuration (trial 3)"));
}

TEST_F(Report, AMissingSummaryIsNotMissed) {
  fs::remove(result_.dir / "summary.txt");
  result_.status = host::StudyStatus::failed;
  result_.reason = "the disk is full";
  print_result(result_, errors_, captured_.console);
  EXPECT_THAT(captured_.err(), AllOf(HasSubstr("study failed"), HasSubstr("the disk is full")));
}

}  // namespace
}  // namespace dsat::cli
