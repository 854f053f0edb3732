// The outcome of a trial, from result files, texts of stderr, exit statuses and the kernel's counter made by hand.
#include "runner/classify.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "host/runner/support.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Classify : public TempDirTest {
 protected:
  Classify() {
    facts_.trial_dir = dir();
    facts_.config = {{"train_batch_size", 8}, {"gradient_accumulation_steps", 1}};
    facts_.exit = {1, 0};
  }
  void stderr_is(const std::string& text) { write_text(dir() / kStderrFile, text); }
  void metrics_are(const std::string& text) { write_text(dir() / kMetricsFile, text); }
  TrialEnd end() { return classify(facts_); }

  const std::string good_ = R"({"latency": 1000, "throughput": 8000, "peak_memory": 5})";
  RunFacts facts_;
};

TEST_F(Classify, WhatIsNoFileInTheResultsPlaceIsNamed) {
  facts_.exit = {0, 0};
  std::filesystem::create_directory(dir() / kMetricsFile);
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, HasSubstr("metrics.json is a folder"));
  std::filesystem::remove(dir() / kMetricsFile);
  ASSERT_EQ(mkfifo((dir() / kMetricsFile).c_str(), 0600), 0);
  EXPECT_THAT(end().reason, HasSubstr("metrics.json is no regular file"));
}

TEST_F(Classify, AValidResultCompletesWhateverTheExit) {
  metrics_are(good_);
  facts_.exit = {0, 0};
  EXPECT_THAT(end().warnings, IsEmpty());
  EXPECT_EQ(end().peak_bytes, 5u);
  EXPECT_EQ(end().step, 5u);

  facts_.exit = {1, 0};
  stderr_is("CUDA out of memory\nEADDRINUSE\n");
  EXPECT_EQ(end().outcome, Outcome::completed);
  EXPECT_THAT(end().warnings, ElementsAre(HasSubstr("exit status 1")));
  EXPECT_FALSE(end().infrastructure);

  facts_.exit = {-1, SIGSEGV};
  EXPECT_THAT(end().warnings, ElementsAre(HasSubstr("signal 11")));
  facts_.timed_out = "ran longer than 30m (--trial-timeout)";
  EXPECT_EQ(end().outcome, Outcome::completed);
  facts_.stopped = true;
  EXPECT_EQ(end().outcome, Outcome::completed);
}

TEST_F(Classify, TheWordErrorMeansNothing) {
  stderr_is("0 errors\nno error\n");
  metrics_are(good_);
  facts_.exit = {0, 0};
  EXPECT_EQ(end().outcome, Outcome::completed);
}

TEST_F(Classify, KnowsTheTextsOfMemoryThatRanOut) {
  for (const char* text :
       {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA error: out of memory", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 8 bytes. Error code 12 (Cannot allocate memory)",
        "terminate called after throwing an instance of 'c10::OutOfMemoryError'",
        "terminate called after throwing an instance of 'std::bad_alloc'", "MemoryError"}) {
    stderr_is(std::string("Traceback\n") + text + "\nConnection closed by peer\n");
    EXPECT_EQ(end().outcome, Outcome::out_of_memory) << text;
    EXPECT_EQ(end().reason, text);  // how much was wanted, and how much there was
  }
}

TEST_F(Classify, TalkingOfMemoryIsNotRunningOutOfIt) {
  stderr_is("hint: use a smaller batch if you run out of memory\nNameError: name 'modle' is not defined\n");
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, HasSubstr("exit status 1: NameError"));
}

TEST_F(Classify, ATrialThatHangsAfterOneRankRanOutOfMemoryRanOutOfMemory) {
  stderr_is("CUDA out of memory. Tried to allocate\n");
  facts_.exit = {-1, SIGTERM};
  facts_.timed_out = "no new output or file for 10m (--no-progress-timeout)";
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  stderr_is("step 3\n");
  EXPECT_EQ(end().outcome, Outcome::timed_out);
  EXPECT_EQ(end().reason, facts_.timed_out);
}

TEST_F(Classify, TheKernelsKillIsOutOfMemoryOnlyIfItWasAKill) {
  facts_.kernel_oom_kills = true;
  facts_.exit = {-1, SIGKILL};
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  facts_.exit = {1, 0};
  EXPECT_EQ(end().outcome, Outcome::failed);  // somebody else's process was killed
  stderr_is("[launch.py:319:sigkill_handler] exits with return code = -9\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  facts_.kernel_oom_kills = false;
  EXPECT_EQ(end().outcome, Outcome::failed);
}

TEST_F(Classify, ATakenPortIsInfrastructure) {
  stderr_is("RuntimeError: ... (errno: 98 - Address already in use).\n");
  EXPECT_TRUE(end().infrastructure);
  EXPECT_EQ(end().outcome, Outcome::failed);
}

TEST_F(Classify, SaysThatAScriptEndedBeforeTheWindow) {
  facts_.exit = {0, 0};
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, HasSubstr("end_profile_step is 5"));
  EXPECT_THAT(end().reason, HasSubstr("at least 6"));
  facts_.model_info = true;
  EXPECT_THAT(end().reason, HasSubstr("model_info.json"));
}

TEST_F(Classify, ABrokenResultIsTheReason) {
  facts_.exit = {0, 0};
  metrics_are("{\"latency\": ");
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, HasSubstr("torn"));
  metrics_are("{\"latency\": -1}");
  EXPECT_THAT(end().reason, HasSubstr("latency is negative"));
}

TEST_F(Classify, AModelInformationRunReadsItsOwnFile) {
  facts_.model_info = true;
  facts_.exit = {0, 0};
  metrics_are(good_);
  EXPECT_EQ(end().outcome, Outcome::failed);
  write_text(dir() / kModelInfoFile, R"({"num_params": 10})");
  EXPECT_EQ(end().outcome, Outcome::completed);
  EXPECT_EQ(end().metrics["num_params"], 10);
}

TEST_F(Classify, AStoppedTrialIsStopped) {
  facts_.stopped = true;
  facts_.exit = {-1, SIGTERM};
  EXPECT_EQ(end().outcome, Outcome::stopped);
  EXPECT_EQ(end().term_signal, SIGTERM);
}

TEST_F(Classify, KeepsTheLastLinesForPeople) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  stderr_is(text + "\x1b[31mValueError: \xFF\x1b[0m\n\n");
  EXPECT_THAT(end().tail, SizeIs(20));
  EXPECT_EQ(end().last_line, "ValueError: \xEF\xBF\xBD");
  EXPECT_NO_THROW(Json(end().last_line).dump());
}

TEST_F(Classify, AScriptsLastLineIsNotItsLaunchers) {
  for (const char* pid : {"101", "202"}) {
    stderr_is(std::string("Traceback\nNameError: name 'modle' is not defined\n"
                          "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) (pid: ") +
              pid + ")\n=====\ntrain.py FAILED\n");
    EXPECT_EQ(end().last_line, "NameError: name 'modle' is not defined");
  }
  stderr_is(
      "torch/distributed/elastic/multiprocessing/redirects.py:29: NOTE: Redirects are not supported here\n"
      "Traceback\nValueError: no such dataset\n[launch.py:300:main] Killing subprocess 7\n");
  EXPECT_EQ(end().last_line, "ValueError: no such dataset") << "a launcher may speak first";
  stderr_is("[2024-01-01 00:00:00] [ERROR] [launch.py:321:sigkill_handler] pid 7\n");
  EXPECT_THAT(end().last_line, HasSubstr("launch.py"));  // better than nothing
}

TEST_F(Classify, NamesASignal) {
  facts_.exit = {-1, SIGABRT};
  EXPECT_EQ(end().reason, "killed by signal 6 (Aborted)");
}

}  // namespace
}  // namespace dsat::host
