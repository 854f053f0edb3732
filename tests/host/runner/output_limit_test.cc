// A log without an end: by its size, and by what it leaves free. The files here have holes, so they take no space.
#include "runner/output_limit.h"

#include <gmock/gmock.h>

#include "dsat/base/files.h"
#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputLimit : public RunnerTest {
 protected:
  void make(const std::string& name, uint64_t bytes) const {
    fs::create_directories((dir() / name).parent_path());
    write_text(dir() / name, "");
    fs::resize_file(dir() / name, bytes);
  }
};

TEST_F(OutputLimit, AllLogsOfATrialCountTogether) {
  EXPECT_EQ(why_too_much(output_bytes(dir()), {}), "");
  make("stdout.log", kMostOutputBytes / 2);
  make("checkpoint.bin", kMostOutputBytes);
  EXPECT_EQ(why_too_much(output_bytes(dir()), {}), "");
  make("rank_logs/run/attempt_0/1/stderr.log", kMostOutputBytes / 2 + 1);
  EXPECT_THAT(why_too_much(output_bytes(dir()), {}), HasSubstr("a trial may print 1.00 GB"));
  EXPECT_EQ(why_too_much(output_bytes(dir() / "none"), {}), "");
}

TEST_F(OutputLimit, LittleFreeSpaceIsAReasonOnlyForALargeLog) {
  EXPECT_EQ(why_too_much(kHarmlessOutputBytes, 0), "");
  EXPECT_EQ(why_too_much(kMostOutputBytes, std::nullopt), "");
  EXPECT_EQ(why_too_much(2 * kHarmlessOutputBytes, 2 * kHarmlessOutputBytes), "");
  EXPECT_THAT(why_too_much(2 * kHarmlessOutputBytes, kHarmlessOutputBytes), HasSubstr("left 16.0 MB free on the disk"));
}

TEST_F(OutputLimit, ATrialThatPassesItIsEndedWithTheReason) {
  make_runner_for(
      {"sh", "-c", "truncate -s 2000000000 \"$DSAT_TRIAL_DIR/stdout.log\"; sleep 600", "--deepspeed", "user.json"});
  const TrialEnd end = run(spec(0));
  EXPECT_EQ(end.outcome, Outcome::timed_out);
  EXPECT_THAT(end.reason, HasSubstr("printed 2.00 GB"));
}

}  // namespace
}  // namespace dsat::host
