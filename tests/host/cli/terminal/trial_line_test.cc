// The line of a trial that has ended.
#include "terminal/trial_line.h"

#include <gmock/gmock.h>

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

host::TrialRecord trial(uint64_t id, host::Outcome outcome) {
  host::TrialRecord record;
  record.id = id;
  record.attempt = 1;
  record.outcome = outcome;
  record.config = Json{{"zero_optimization", {{"stage", 2}}}, {"train_micro_batch_size_per_gpu", 8}};
  return record;
}

host::TrialRecord measured(uint64_t id, double value) {
  host::TrialRecord record = trial(id, host::Outcome::completed);
  record.metrics = Json{{"FLOPS_per_gpu", value}, {"latency", value}};
  return record;
}

const TrialLineSettings kFlops{"FLOPS_per_gpu", true, 50, false};

TEST(TrialLine, TellsWhatWasTriedAndHowFarFromTheBestItIs) {
  EXPECT_EQ(plain_text(trial_line(measured(3, 12.3e12), {}, kFlops)),
            "trial  3  stage 2  micro batch    8     12.3 TFLOP/s  best");
  EXPECT_EQ(plain_text(trial_line(measured(14, 11e12), 12.3e12, kFlops)),
            "trial 14  stage 2  micro batch    8       11 TFLOP/s   -10.6 %");
  EXPECT_EQ(plain_text(trial_line(measured(15, 24.6e12), 12.3e12, kFlops)),
            "trial 15  stage 2  micro batch    8     24.6 TFLOP/s  +100.0 %  best");
}

TEST(TrialLine, OfAMetricThatIsMinimisedLessIsBetter) {
  const TrialLineSettings latency{"latency", false, 50, false};
  EXPECT_THAT(plain_text(trial_line(measured(1, 5000), 10000.0, latency)), HasSubstr("5 ms  +100.0 %  best"));
  EXPECT_THAT(plain_text(trial_line(measured(1, 20000), 10000.0, latency)), HasSubstr("20 ms   -50.0 %"));
}

TEST(TrialLine, AFailureIsNamedInAWordAndExplainedWhenAsked) {
  host::TrialRecord record = trial(4, host::Outcome::failed);
  record.reason = "exit status 1:\nNameError\x1b[2J";
  record.note = "rung 1";
  record.peak_bytes = 84'100'000;
  EXPECT_EQ(plain_text(trial_line(record, {}, kFlops)), "trial  4  stage 2  micro batch    8  failed");
  TrialLineSettings verbose = kFlops;
  verbose.verbose = true;
  EXPECT_EQ(plain_text(trial_line(record, {}, verbose)),
            "trial  4  stage 2  micro batch    8  failed, peak 84.1 MB, exit status 1: NameError (rung 1)");
  record.outcome = host::Outcome::out_of_memory;
  EXPECT_THAT(plain_text(trial_line(record, {}, kFlops)), HasSubstr("out of memory"));
}

TEST(TrialLine, SaysWhatATrialIsFor) {
  host::TrialRecord record = measured(9, 1e12);
  record.kind = host::TrialKind::baseline;
  EXPECT_THAT(plain_text(trial_line(record, {}, kFlops)), HasSubstr("your own"));
  record.kind = host::TrialKind::duplicate;
  record.duplicate_of = 3;
  const std::string line = plain_text(trial_line(record, 0.5e12, kFlops));
  EXPECT_THAT(line, HasSubstr("as trial 3"));
  EXPECT_THAT(line, Not(HasSubstr("best"))) << "nothing new was measured";
}

TEST(TrialLine, StaysShort) {
  host::TrialRecord record = measured(49, 123.4e12);
  record.kind = host::TrialKind::repeat;
  record.reason = std::string(500, 'x');
  record.note = record.reason;
  EXPECT_LE(plain_text(trial_line(record, 120e12, kFlops)).size(), 80u);
}

TEST(PercentBetter, IsNoNumberWhereThereIsNone) {
  EXPECT_EQ(percent_better(0, 0, true), "-");
  EXPECT_EQ(percent_better(20, 1, true), "x 20");
}

}  // namespace
}  // namespace dsat::cli
