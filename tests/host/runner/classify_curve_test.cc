// Where a completed trial's losses and gradient norms come from.
#include <gmock/gmock.h>

#include <filesystem>

#include "host/runner/classify_fixture.h"
#include "outputs/curve.h"
#include "outputs/probe_report.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Values = std::vector<std::optional<double>>;

class ClassifyCurve : public Classify {
 protected:
  ClassifyCurve() {
    metrics_are(good_);
    facts_.exit = {0, 0};
  }
  void hook_left(const std::string& text) {
    std::filesystem::create_directories(dir() / kProbeFolder);
    write_text(dir() / kProbeFolder / kStepsFile, text);
  }
};

TEST_F(ClassifyCurve, TheHooksFileCountsWhereTheScriptReportsNothing) {
  EXPECT_TRUE(end().curve.empty());
  hook_left(R"({"losses": [3, 2], "grad_norms": [1, 1]})");
  EXPECT_EQ(end().curve.losses, (Values{3, 2}));
  metrics_are(R"({"latency": 1000, "losses": [5, 4]})");
  EXPECT_EQ(end().curve.losses, (Values{5, 4}));
  EXPECT_EQ(end().curve.grad_norms, (Values{1, 1}));
}

TEST_F(ClassifyCurve, TheUsersPatternsComeFirst) {
  hook_left(R"({"losses": [3, 2], "grad_norms": [1, 1]})");
  facts_.loss_pattern = "loss=(\\S+)";
  write_text(dir() / kStdoutFile, "loss=9\nloss=8\n");
  EXPECT_EQ(end().curve.losses, (Values{9, 8}));
  EXPECT_EQ(end().curve.grad_norms, (Values{1, 1}));
  std::filesystem::create_directories(dir() / "rank_logs");
  write_text(dir() / "rank_logs" / "1_rank0.log", "loss=7\n");
  write_text(dir() / "rank_logs" / "1_rank1.log", "loss=6\nloss=6\nloss=6\n");
  EXPECT_EQ(end().curve.losses, (Values{7}));
}

TEST_F(ClassifyCurve, ALogWithoutItsBeginningHasNoFirstSteps) {
  facts_.loss_pattern = "loss=(\\S+)";
  std::string text;
  for (int i = 0; i < 50000; ++i) text += "loss=1.5\n";
  write_text(dir() / kStdoutFile, text);
  EXPECT_THAT(end().curve.losses, IsEmpty());
}

TEST_F(ClassifyCurve, ADamagedFileIsAWarningAndNoFailure) {
  hook_left("{");
  EXPECT_EQ(end().outcome, Outcome::completed);
  EXPECT_THAT(end().warnings, ElementsAre(HasSubstr("left out")));
  facts_.model_info = true;
  write_text(dir() / kModelInfoFile, R"({"num_params": 10})");
  EXPECT_THAT(end().warnings, IsEmpty());
}

}  // namespace
}  // namespace dsat::host
