// The picture of a running study.
#include "terminal/search_view.h"

#include <gmock/gmock.h>

namespace dsat::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

host::TrialRecord trial(uint64_t id) {
  host::TrialRecord record;
  record.id = id;
  record.attempt = 1;
  record.config = Json{{"zero_optimization", {{"stage", 2}}}, {"train_micro_batch_size_per_gpu", 8}};
  return record;
}

class Picture : public ::testing::Test {
 protected:
  Picture() { view_.lines = {"FLOPS_per_gpu", true, 16, false}; }
  std::vector<std::string> lines(TerminalSize size = {80, 24}) const {
    std::vector<std::string> text;
    for (const StyledLine& line : picture(view_, now_, size, false)) text.push_back(plain_text(line));
    return text;
  }
  void run(uint64_t id, seconds age) { view_.running[id] = {trial(id), now_ - age}; }

  SearchView view_;
  const SearchView::Clock::time_point now_ = view_.begin + minutes(10);
};

TEST_F(Picture, OfAStudyThatBegins) {
  EXPECT_THAT(lines(), ElementsAre("........................................  0/16 trials", "best      none yet",
                                   "running   none"));
}

TEST_F(Picture, HasBarTimeLeftBestAndRunningTrialsWithTheirAge) {
  view_.ended = 4;
  view_.last_end = now_;
  view_.best = SearchView::Best{3, 12.3e12, "stage 2, micro batch 8"};
  view_.own = 6.15e12;
  run(11, seconds(75));
  run(9, seconds(3725));
  view_.running[9].trial.slots = {"0", "1"};
  EXPECT_THAT(lines(), ElementsAre("##########..............................  4/16 trials, about 30m 0s left",
                                   "best      12.3 TFLOP/s, stage 2, micro batch 8, trial 3, +100.0 % against your own",
                                   "running   trial  9  stage 2  micro batch    8  1:02:05  on 0,1",
                                   "          trial 11  stage 2  micro batch    8   1:15"));
}

TEST_F(Picture, HasTheLastWarnings) {
  view_.warnings = {"first", "second", "third"};
  EXPECT_THAT(lines(), ::testing::Contains(AllOf(HasSubstr("1 earlier"), EndsWith(": second"))));
  EXPECT_EQ(lines().back(), "warning: third");
}

TEST_F(Picture, OfManyTrialsShowsTheOldest) {
  for (uint64_t id = 0; id < 16; ++id) run(id, seconds(100 - id));
  ASSERT_THAT(lines(), SizeIs(10));
  EXPECT_THAT(lines()[2], HasSubstr("trial  0"));
  EXPECT_THAT(lines().back(), HasSubstr("and 9 trials"));
}

TEST_F(Picture, FitsALowTerminal) {
  for (uint64_t id = 0; id < 16; ++id) run(id, seconds(1));
  view_.warnings = {"careful", "again"};
  for (size_t rows = 1; rows < 30; ++rows) EXPECT_LE(lines({80, rows}).size(), std::max<size_t>(1, rows - 1)) << rows;
  EXPECT_THAT(lines({80, 3}), ElementsAre("0/16 trials, 16 running, best none yet"));
}

TEST_F(Picture, ANarrowTerminalHasNoBar) { EXPECT_EQ(lines({20, 24}).front(), "0/16 trials"); }

TEST_F(Picture, WithoutAKnownLimitThereIsNoBar) {
  view_.lines.max_trials = 0;
  EXPECT_EQ(lines().front(), "0 trials");
}

TEST_F(Picture, TimeLeftCountsDownBetweenTrials) {
  view_.ended = 8;
  view_.last_end = view_.begin + minutes(8);  // a minute each, 8 to go
  EXPECT_EQ(view_.time_left(now_), milliseconds(minutes(6)));
  EXPECT_EQ(view_.time_left(now_ + minutes(60)), milliseconds(0));
  view_.time_budget = minutes(11);
  EXPECT_EQ(view_.time_left(now_), milliseconds(minutes(1)));
}

TEST_F(Picture, TrialsOfBeforeAResumeSayNothingOfThePace) {
  view_.earlier = 8;
  EXPECT_FALSE(view_.time_left(now_));
  EXPECT_THAT(lines().front(), HasSubstr("8/16 trials"));
}

TEST(Ceilings, FirmUp) {
  Ceilings ceilings;
  EXPECT_EQ(ceilings.text(), "");
  const Json range{{"value", 24.2}, {"low", 20}, {"high", 30}};
  const auto profile = [&](const Json& memory) {
    return Json{{"device_memory_bytes", memory}, {"stages", {{{"stage", 2}, {"max_micro_batch", range}}}}};
  };
  ceilings.take_profile(profile(nullptr));
  EXPECT_EQ(ceilings.text(), "stage 2: unknown");
  ceilings.take_profile(profile(80e9));
  EXPECT_EQ(ceilings.text(), "stage 2: about 24");
  const auto end = [&](int micro_batch, host::Outcome outcome) {
    host::TrialRecord record = trial(0);
    record.config["train_micro_batch_size_per_gpu"] = micro_batch;
    record.outcome = outcome;
    ceilings.take_trial(record);
  };
  end(16, host::Outcome::completed);
  EXPECT_EQ(ceilings.text(), "stage 2: about 24");
  end(32, host::Outcome::out_of_memory);
  EXPECT_EQ(ceilings.text(), "stage 2: 16 to 31");
  end(23, host::Outcome::completed);
  end(24, host::Outcome::out_of_memory);
  EXPECT_EQ(ceilings.text(), "stage 2: 23");
  end(40, host::Outcome::completed);
  EXPECT_EQ(ceilings.text(), "stage 2: 40 or more") << "with other keys more fits";
}

TEST(Ceilings, OfAStageOnWhichNothingFits) {
  Ceilings ceilings;
  host::TrialRecord record = trial(0);
  record.config["train_micro_batch_size_per_gpu"] = 1;
  record.outcome = host::Outcome::out_of_memory;
  ceilings.take_trial(record);
  EXPECT_EQ(ceilings.text(), "stage 2: nothing fits");
}

TEST(Age, IsShort) {
  EXPECT_EQ(age_text(seconds(41)), "0:41");
  EXPECT_EQ(age_text(seconds(3600)), "1:00:00");
  EXPECT_EQ(age_text(milliseconds(-5)), "0:00");
}

}  // namespace
}  // namespace dsat::cli
