// What goes to which stream, with and without --json, to terminals, closed pipes and full disks.
#include "terminal/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "captured.h"
#include "terminal/exit_status.h"
#include "terminal/signals.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;

TEST(Console, TextGoesToStandardOutputAndErrorsToStandardError) {
  Captured captured;
  captured.console.line("hello");
  captured.console.error("wrong, here, do that");
  EXPECT_EQ(captured.out(), "hello\n");
  EXPECT_EQ(captured.err(), "dsat-host: wrong, here, do that\n");
}

TEST(Console, UnderJsonStandardOutputHoldsTheObjectOnly) {
  Captured captured;
  captured.console.reserve_stdout_for_json();
  captured.console.line("progress");
  captured.console.print_json(Json{{"a", 1}});
  EXPECT_EQ(Json::parse(captured.out()), (Json{{"a", 1}}));
  EXPECT_EQ(captured.err(), "progress\n");
}

TEST(Console, BytesThatAreNoUtf8DoNotCostTheObject) {
  Captured captured;
  captured.console.print_json(Json{{"note", "caf\xe9"}});
  EXPECT_NO_THROW(Json::parse(captured.out()));
}

TEST(Console, AFullStandardOutputIsAFailureInTheEnd) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  Console console(full, open("/dev/null", O_WRONLY));
  console.line("lost");
  console.line("lost too");
  EXPECT_EQ(console.finish(kBestFound), kFailed);
  EXPECT_EQ(console.finish(kInterrupted), kInterrupted);
}

TEST(Console, AReaderThatWentAwayIsNoFailure) {
  ignore_broken_pipes();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  close(pipe_ends[0]);
  Console console(pipe_ends[1], pipe_ends[1]);
  console.line("nobody reads this");
  EXPECT_EQ(console.finish(kBestFound), kBestFound);
  close(pipe_ends[1]);
}

TEST(Console, WithoutATerminalLinesAreOfUsualWidth) {
  Captured captured;
  EXPECT_FALSE(captured.console.text().terminal());
  EXPECT_EQ(captured.console.text().columns(), 80);
}

TEST(OneLine, HoldsNeitherBreaksNorControls) {
  EXPECT_EQ(one_line("a\nb\r\tc\x1b[31md\x7f"), "a b  cd");
  EXPECT_EQ(one_line("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(ExitStatus, FollowsTheStudyAndTheStatus) {
  EXPECT_EQ(exit_status(host::StudyStatus::completed), 0);
  EXPECT_EQ(exit_status(host::StudyStatus::no_best), 1);
  EXPECT_EQ(exit_status(host::StudyStatus::interrupted), 3);
  EXPECT_EQ(exit_status(host::StudyStatus::failed), 4);
  EXPECT_EQ(exit_status(host::Status()), 0);
  EXPECT_EQ(exit_status(host::Status::invalid("x")), 2);
  EXPECT_EQ(exit_status(host::Status::internal("x")), 4);
}

}  // namespace
}  // namespace dsat::cli
