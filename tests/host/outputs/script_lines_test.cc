// Which line of a log says what went wrong, whatever loggers, bars and other ranks print around it.
#include "outputs/script_lines.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::SizeIs;

ScriptLines script_lines(const std::vector<std::string>& lines) {
  return script_lines_of(lines, LineReader().read(lines, LogStream::standard_error));
}

std::string last_of(const std::vector<std::string>& lines) { return script_lines(lines).last; }

const std::vector<std::string> kTraceback{
    "Traceback (most recent call last):", "  File \"train.py\", line 88, in <module>", "    main()",
    "KeyError: 'labels'"};

std::vector<std::string> then(std::vector<std::string> lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

TEST(ScriptLines, ATracebacksExceptionIsTheCauseWhateverFollows) {
  EXPECT_EQ(last_of(kTraceback), "KeyError: 'labels'");
  for (const char* line :
       {"  0%|          | 0/100 [00:12<?, ?it/s]", "wandb: Synced 5 files",
        "[rank0]:[W1123 10:00:00 ProcessGroupNCCL.cpp:1250] Warning: WARNING: destroy_process_group() was not called",
        "/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: 1 leaked semaphore",
        "[2026-01-01 10:00:00,000] [INFO] closing the writer"}) {
    EXPECT_EQ(last_of(then(kTraceback, {line})), "KeyError: 'labels'") << line;
  }
}

TEST(ScriptLines, AnExceptionThatPythonIgnoredIsNotTheCause) {
  const std::vector<std::string> ignored{"Exception ignored in: <function DeepSpeedCPUAdam.__del__ at 0x7f699cac6480>",
                                         "Traceback (most recent call last):", "  File \"cpu_adam.py\", line 102",
                                         "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'"};
  EXPECT_EQ(last_of(then(kTraceback, ignored)), "KeyError: 'labels'");
  EXPECT_EQ(last_of(then(ignored, kTraceback)), "KeyError: 'labels'");
  EXPECT_EQ(last_of(then(kTraceback, {"Exception ignored in: <_io.TextIOWrapper>", "BrokenPipeError: [Errno 32]"})),
            "KeyError: 'labels'");
  EXPECT_EQ(last_of(then(ignored, {"cannot open the data"})), "cannot open the data");
  EXPECT_EQ(last_of(then(ignored, {"train.py: error: no data"})), "train.py: error: no data");
  EXPECT_FALSE(script_lines(ignored).tells_the_cause);
  EXPECT_THAT(script_lines(ignored).lines, SizeIs(4)) << "people see it";
}

TEST(ScriptLines, RanksInAnyOrderGiveOneCause) {
  std::vector<std::string> first, second;
  for (const std::string& line : kTraceback) {
    first.push_back("[rank0]: " + line);
    second.push_back("[rank1]: " + line);
  }
  EXPECT_EQ(last_of(then(first, second)), "KeyError: 'labels'");
  EXPECT_EQ(last_of(then(second, first)), "KeyError: 'labels'");
}

TEST(ScriptLines, TheLastOfSeveralTracebacksCounts) {
  auto lines = then(kTraceback, {"During handling of the above exception, another exception occurred:"});
  lines = then(lines, {"Traceback (most recent call last):", "  File \"train.py\", line 90, in main",
                       "    raise RuntimeError(\"Error: no labels\")", "RuntimeError: no labels"});
  EXPECT_EQ(last_of(lines), "RuntimeError: no labels");
}

TEST(ScriptLines, WhatGoesWrongAfterATracebackThatWasCaughtGoesFirst) {
  EXPECT_EQ(last_of(then(kTraceback, {"terminate called after throwing an instance of 'c10::Error'"})),
            "terminate called after throwing an instance of 'c10::Error'");
  EXPECT_EQ(last_of(then(kTraceback, {"train.py: error: argument --lr: invalid float value"})),
            "train.py: error: argument --lr: invalid float value");
}

TEST(ScriptLines, AMessageThatSaysTooLittleIsReadOn) {
  const std::vector<std::string> frame{"Traceback (most recent call last):", "  File \"a.py\", line 3, in <module>",
                                       "    run(x)"};
  EXPECT_EQ(last_of(then(frame, {"RuntimeError: it failed:", "  at the gate", "  twice"})),
            "RuntimeError: it failed: at the gate");
  EXPECT_EQ(last_of(then(frame, {"v.ValidationError: 1 validation error for C", "stage", "  must be at most 3"})),
            "v.ValidationError: 1 validation error for C: stage: must be at most 3");
  EXPECT_EQ(last_of(then(frame, {"v.ValidationError: 1 validation error for C"})),
            "v.ValidationError: 1 validation error for C")
      << "there is no more";
  EXPECT_EQ(last_of(then(frame, {"RuntimeError: it failed:"})), "RuntimeError: it failed:");
  EXPECT_EQ(last_of(then(frame, {"AssertionError"})), "AssertionError (run(x))") << "the source says what was asserted";
  EXPECT_EQ(last_of({"AssertionError"}), "AssertionError");
  EXPECT_EQ(last_of({kTraceback[0], kTraceback[1], "    raise QueueError", "QueueError"}), "QueueError");
  EXPECT_EQ(last_of(then(frame, {"KeyError: 'x'", "  more"})), "KeyError: 'x'") << "that says enough";
  EXPECT_TRUE(script_lines(then(frame, {"RuntimeError: it failed:", "  at the gate", "  twice"})).ends_with_it);
}

TEST(ScriptLines, AMessageIsReadOnInItsOwnRanksLines) {
  EXPECT_EQ(last_of({"[rank0]: Traceback (most recent call last):", "[rank0]:   File \"a.py\", line 3",
                     "[rank1]: Traceback (most recent call last):", "[rank1]:   File \"a.py\", line 3",
                     "[rank0]: RuntimeError: it failed:", "[rank1]: RuntimeError: it failed:", "[rank0]:   at rank 0",
                     "[rank1]:   at rank 1"}),
            "RuntimeError: it failed: at rank 1");
}

TEST(ScriptLines, ATracebackOfALauncherIsNotTheScripts) {
  const std::vector<std::string> launcher{
      "Traceback (most recent call last):", "  File \"/usr/bin/accelerate\", line 8, in <module>",
      "    sys.exit(main())", "subprocess.CalledProcessError: Command '['t.py']' returned non-zero exit status 1."};
  EXPECT_EQ(last_of(then(kTraceback, launcher)), "KeyError: 'labels'");
  EXPECT_THAT(script_lines(then(kTraceback, launcher)).lines, SizeIs(4));
  EXPECT_EQ(last_of(then({"no data"}, launcher)), "no data");
  EXPECT_THAT(script_lines(launcher).lines, SizeIs(0));
}

TEST(ScriptLines, WithoutATracebackTheLastLineCounts) {
  EXPECT_EQ(last_of({"OSError: retrying", "cannot open the data"}), "cannot open the data");
  EXPECT_EQ(last_of({"cannot open the data", " 10%|#   | 1/10"}), "cannot open the data");
  EXPECT_EQ(last_of({" 10%|#   | 1/10"}), " 10%|#   | 1/10") << "better than nothing";
  EXPECT_EQ(last_of({}), "");
}

TEST(ScriptLines, ARankThatLostItsPeerIsNotTheCause) {
  const std::string lost = "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:34";
  EXPECT_EQ(last_of(then(kTraceback, {lost})), "KeyError: 'labels'");
  EXPECT_EQ(last_of({"ValueError: seven", lost}), "ValueError: seven");
  EXPECT_TRUE(script_lines(kTraceback).tells_the_cause);
  EXPECT_FALSE(script_lines({lost}).tells_the_cause);
  EXPECT_THAT(script_lines(then(kTraceback, {lost})).lines, SizeIs(5));
}

}  // namespace
}  // namespace dsat::host
