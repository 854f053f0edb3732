// The files that people read: which are written when, and what the summary has. The trials of a small study are made by
// hand.
#include "study/results/results.h"

#include "host/study/study_fixture.h"
#include "study/state/best.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

class ResultsTest : public StudyTest {
 protected:
  ResultsTest() : plan_(plan_of(options())) {
    fs::create_directories(plan_.dir);
    add(2, Outcome::completed, 200);
    add(3, Outcome::out_of_memory, 0);
    add(3, Outcome::failed, 0);
    best_ = choose_best(trials_, "throughput", true, std::nullopt);
  }

  void add(int stage, Outcome outcome, double throughput) {
    Trial trial;
    trial.record.id = trials_.size();
    trial.record.attempt = 1;
    trial.record.outcome = outcome;
    trial.record.overrides = {{"train_micro_batch_size_per_gpu", 4},
                              {"zero_optimization", {{"stage", stage}, {"reduce_bucket_size", 1000}}}};
    trial.record.config = trial.record.overrides;
    trial.record.config["gradient_accumulation_steps"] = 2;
    trial.record.metrics = outcome == Outcome::completed ? Json{{"throughput", throughput}} : Json();
    trial.record.peak_bytes = 2'000'000'000;
    trial.identity = std::to_string(trials_.size());
    trials_.push_back(trial);
  }
  ResultsView view(const std::string& reason = "") const {
    return {plan_, trials_, profile_, best_, std::nullopt, reason};
  }

  Plan plan_;
  std::vector<Trial> trials_;
  Json profile_;
  std::optional<BestRecord> best_;
  Results results_{[](const Json& config) { return "train --stage " + config["zero_optimization"]["stage"].dump(); }};
};

TEST_F(ResultsTest, WritesTheBestConfigurationItsMetricsItsCommandAndTheTable) {
  results_.write(view(), true);
  const Json config = Json::parse(read_text(plan_.dir / "best_ds_config.json"));
  EXPECT_EQ(config, best_->config);
  EXPECT_EQ(Json::parse(read_text(plan_.dir / "best_ds_metrics.json"))["throughput"], 200.0);
  EXPECT_EQ(read_text(plan_.dir / "best_cmd.txt"), "train --stage 2\n");
  EXPECT_EQ(read_text(plan_.dir / "summary.txt"), summary_text(view()));
  for (const auto& entry : fs::directory_iterator(plan_.dir)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << "nothing half-written is left";
  }
}

TEST_F(ResultsTest, WithoutABestThereIsOnlyTheTable) {
  best_.reset();
  results_.write(view(), true);
  EXPECT_TRUE(fs::exists(plan_.dir / "summary.txt"));
  EXPECT_FALSE(fs::exists(plan_.dir / "best_ds_config.json"));
}

TEST_F(ResultsTest, WritesAtMostOnceASecondUnlessItMust) {
  results_.write(view(), true);
  const std::string before = read_text(plan_.dir / "summary.txt");
  add(1, Outcome::completed, 900);
  best_ = choose_best(trials_, "throughput", true, std::nullopt);
  results_.write(view(), false);
  EXPECT_EQ(read_text(plan_.dir / "summary.txt"), before);
  EXPECT_EQ(read_text(plan_.dir / "best_cmd.txt"), "train --stage 1\n") << "another best is written at once";
  results_.write(view(), true);
  EXPECT_NE(read_text(plan_.dir / "summary.txt"), before);
}

TEST_F(ResultsTest, AnotherTrialThatIsAsGoodIsWrittenAtOnceToo) {
  results_.write(view(), true);
  add(1, Outcome::completed, 200);
  best_->trial = trials_.back().id();
  best_->config = trials_.back().record.config;
  results_.write(view(), false);
  EXPECT_EQ(read_text(plan_.dir / "best_cmd.txt"), "train --stage 1\n");
}

TEST_F(ResultsTest, AnUnchangedFileIsLeftAlone) {
  results_.write(view(), true);
  write_text(plan_.dir / "best_cmd.txt", "touched by hand");
  results_.write(view("at an end"), true);
  EXPECT_EQ(read_text(plan_.dir / "best_cmd.txt"), "touched by hand");
}

TEST_F(ResultsTest, AFolderThatIsGoneIsAnErrorThatNamesTheFile) {
  fs::remove_all(plan_.dir);
  EXPECT_THAT(error_of([&] { results_.write(view(), true); }, DSAT_INTERNAL), HasSubstr("best_ds_config.json"));
}

TEST_F(ResultsTest, TheTableHasALineForEachStageWithItsTrialsAndItsBest) {
  const std::string text = summary_text(view("done"));
  std::istringstream lines(text);
  std::string header, stage1, stage2, stage3;
  std::getline(lines, header);
  std::getline(lines, stage1);
  std::getline(lines, stage2);
  std::getline(lines, stage3);
  EXPECT_THAT(header, HasSubstr("throughput"));
  const auto words = [](const std::string& line) {
    std::istringstream in(line);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  EXPECT_THAT(words(stage1), ::testing::ElementsAre("1", "0", "0", "0", "-", "-", "-", "-", "-", "-"));
  EXPECT_THAT(stage2, HasSubstr("200"));
  EXPECT_THAT(stage2, HasSubstr("trial 0: reduce_bucket_size=1000"));
  const std::vector<std::string> third = words(stage3);
  ASSERT_GE(third.size(), 4u);
  EXPECT_EQ(third[1] + third[2] + third[3], "211") << "two trials, one out of memory, one failed";
  EXPECT_THAT(text, AllOf(HasSubstr("best: trial 0, "), HasSubstr("ZeRO stage 2, "), HasSubstr("micro batch 4, "),
                          HasSubstr("200 samples/s")));
  EXPECT_THAT(text, HasSubstr("ended: done"));
}

TEST_F(ResultsTest, TheTableNamesKeysOutsideOfZeroInFull) {
  trials_[0].record.overrides["optimizer"] = {{"params", {{"lr", 0.5}}}};
  EXPECT_THAT(summary_text(view()), HasSubstr("optimizer.params.lr=0.5"));
}

TEST_F(ResultsTest, ABelievedBestSaysWhyInTheSummary) {
  best_->why = "because it is steadier";
  EXPECT_THAT(summary_text(view()), HasSubstr("note: because it is steadier"));
}

}  // namespace
}  // namespace dsat::host
