// What goes to which stream, with and without --json, to terminals, closed pipes and full disks.
#include "terminal/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <string>

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
  EXPECT_TRUE(Json::accept(captured.out()));
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

TEST(Console, AnOutputThatRefusesToWaitGetsAllTheSame) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  fcntl(ends[0], F_SETFL, 0);
  const std::string text(1 << 20, 'x');  // sixteen times what a pipe holds
  auto reading = std::async(std::launch::async, [&] {
    std::string read_text;
    char part[4096];
    for (ssize_t size = 0; (size = read(ends[0], part, sizeof part)) > 0;) read_text.append(part, part + size);
    return read_text;
  });
  Output output(ends[1]);
  output.write(text);
  close(ends[1]);
  EXPECT_EQ(output.error(), 0);
  EXPECT_EQ(reading.get().size(), text.size());
  close(ends[0]);
}

TEST(Console, AnOutputIsLostOnceNobodyReadsItOrAWriteHasFailed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Output output(ends[1]);
  EXPECT_FALSE(output.lost_within(std::chrono::milliseconds(0)));
  close(ends[0]);
  EXPECT_TRUE(output.lost_within(std::chrono::hours(1)));
  close(ends[1]);
  Output full(open("/dev/full", O_WRONLY));
  EXPECT_FALSE(full.lost_within(std::chrono::milliseconds(0)));
  full.write("lost");
  EXPECT_TRUE(full.lost_within(std::chrono::milliseconds(0)));
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

TEST(ExitCode, FollowsTheStudyAndTheStatus) {
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
