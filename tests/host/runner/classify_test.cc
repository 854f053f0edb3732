// The outcome of a trial, from result files, texts of stderr, exit statuses and the kernel's counter made by hand.
#include "runner/classify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "command/command_template.h"
#include "dsat/base/utf8.h"
#include "host/runner/classify_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(Classify, WhatIsNoFileInTheResultsPlaceIsNamed) {
  facts_.exit = {0, 0};
  std::filesystem::create_directory(dir() / kMetricsFile);
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, AllOf(HasSubstr("metrics.json"), HasSubstr("folder")));
  std::filesystem::remove(dir() / kMetricsFile);
  ASSERT_EQ(mkfifo((dir() / kMetricsFile).c_str(), 0600), 0);
  EXPECT_THAT(end().reason, AllOf(HasSubstr("metrics.json"), HasSubstr("regular file")));
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

TEST_F(Classify, AMetricThatCannotBeUsedIsNamed) {
  metrics_are(R"({"latency": 1000, "throughput": 8000, "FLOPS_per_gpu": 1e30})");
  EXPECT_EQ(end().outcome, Outcome::completed);
  EXPECT_THAT(end().left_out, ElementsAre("FLOPS_per_gpu"));
}

TEST_F(Classify, WhatIsPrintedToStandardOutputAloneTellsTheCause) {
  write_text(dir() / kStdoutFile,
             "step 1\nTraceback (most recent call last):\n  File \"t.py\", line 1\nNameError: name 'modle'\n");
  stderr_is("");
  EXPECT_THAT(end().reason, HasSubstr("NameError: name 'modle'"));
  for (const char* prefix : {"", "[rank0]: "}) {  // torch's, from 2.2 on
    write_text(dir() / kStdoutFile, fmt::format("{0}Traceback (most recent call last):\n{0}MemoryError\n", prefix));
    EXPECT_EQ(end().outcome, Outcome::out_of_memory) << prefix;
  }
}

TEST_F(Classify, AReasonIsCutBetweenCharacters) {
  const std::string accents = [] {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "\u00e9";
    return text;
  }();
  stderr_is("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB " + accents + accents + "\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  EXPECT_EQ(first_invalid_utf8(end().reason), std::string::npos) << end().reason;
  metrics_are("{\"latency\": \"a" + accents + "\"}");
  stderr_is("");
  EXPECT_THAT(end().reason, HasSubstr("latency is not"));
  EXPECT_EQ(first_invalid_utf8(end().reason), std::string::npos) << end().reason;
}

// Its beginning, which would show that it is data, is not read.
TEST_F(Classify, TheRestOfALineTellsNothing) {
  const std::string long_text(300000, 'x');
  write_text(dir() / kStdoutFile, "{\"text\": \"" + long_text + " RuntimeError: CUDA out of memory.\"}\n");
  EXPECT_EQ(end().outcome, Outcome::failed);
  write_text(dir() / kStdoutFile, long_text + "\nRuntimeError: CUDA out of memory.\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
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
    EXPECT_THAT(end().reason, EndsWith(text));  // how much was wanted, and how much there was
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

TEST_F(Classify, AMessageOnStandardOutputOrInARanksLogCounts) {
  write_text(dir() / kStdoutFile, "node:1:2 [0] NCCL WARN Cuda failure 2 'out of memory'\n");
  stderr_is("RuntimeError: NCCL error\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  std::filesystem::remove(dir() / kStdoutFile);
  std::filesystem::create_directories(dir() / kRankLogFolder / "none_x/attempt_0/5");
  write_text(dir() / kRankLogFolder / "none_x/attempt_0/5/stderr.log", "CUDA error: out of memory\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  EXPECT_EQ(end().reason, "rank 5: CUDA error: out of memory");
  std::filesystem::rename(dir() / kRankLogFolder, dir() / "attempts");
  EXPECT_EQ(end().outcome, Outcome::failed) << "an earlier attempt's log is not this one's";
}

TEST_F(Classify, TheLargestBoundOfAllRanksIsThePeaks) {
  const auto line = [](const char* wanted, const char* allocated) {
    return fmt::format(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity "
        "of 8.00 GiB of which 0 bytes is free. Of the allocated memory {} GiB is allocated by PyTorch\n",
        wanted, allocated);
  };
  stderr_is(line("1.00", "5.00") + line("0.50", "7.00") + line("2.00", "99.00"));
  EXPECT_EQ(end().peak_above_bytes, (uint64_t{15} << 30) / 2) << "99 of 8 GiB cannot be";
  stderr_is("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000000000 bytes.\n");
  EXPECT_FALSE(end().peak_above_bytes) << "the host's memory is not the device's";
  facts_.on_processors = true;
  EXPECT_EQ(end().peak_above_bytes, 8000000000u);
}

TEST_F(Classify, ARequestForMoreThanAnyDeviceHasIsAFailure) {
  stderr_is("RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.\n");
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, HasSubstr("more than 1EB"));
}

TEST_F(Classify, ASmallRequestThatIsRefusedWithMuchFreeRunsAgainBeforeItCounts) {
  const auto line = [](const char* free) {
    return fmt::format(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 214.00 MiB. GPU 0 has a total capacity of 23.65 "
        "GiB of which {} is free. Of the allocated memory 2.00 GiB is allocated by PyTorch\n",
        free);
  };
  stderr_is(line("20.00 GiB"));
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  EXPECT_TRUE(end().infrastructure);
  stderr_is(line("20.00 GiB") + line("8.00 MiB"));
  EXPECT_FALSE(end().infrastructure) << "another rank had nothing left";
}

TEST_F(Classify, AUsersOwnPatternIsOutOfMemory) {
  stderr_is("pool 7 is exhausted\n");
  EXPECT_EQ(end().outcome, Outcome::failed);
  facts_.oom_patterns = {"pool \\d+ is exhausted"};
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  EXPECT_EQ(end().reason, "pool 7 is exhausted");
}

TEST_F(Classify, TheReasonIsTheFailingRanksAndNotTheLaunchers) {
  std::filesystem::create_directory(dir() / kRankLogFolder);
  write_text(dir() / kRankLogFolder / "20260101_rank0.log",
             "Traceback\nRuntimeError: [pair.cc:598] Connection closed by peer [127.0.0.1]:3\n");
  write_text(dir() / kRankLogFolder / "20260101_rank1.log", "Traceback\nValueError: no such sample\n");
  write_text(dir() / kRankLogFolder / "20260101_rank2.log", "ready\n");
  stderr_is("[2026-01-01 00:00:00] [ERROR] [launch.py:321:sigkill_handler] ['t.py', '--local_rank=2'] exits\n");
  EXPECT_EQ(end().reason, "exit status 1: ValueError: no such sample");
  stderr_is("ValueError: no such sample\nTraceback\nRuntimeError: [pair.cc:598] Connection closed by peer\n");
  EXPECT_EQ(end().last_line, "ValueError: no such sample") << "a lost peer is no cause";
}

TEST_F(Classify, ALaunchersStatusNamesTheSignalOfTheRank) {
  facts_.exit = {247, 0};
  EXPECT_EQ(end().reason, "exit status 247");
  facts_.launcher = Launcher::deepspeed;
  EXPECT_EQ(end().reason, "exit status 247: a rank was killed by signal 9 (Killed)");
  facts_.launcher = Launcher::none;
  facts_.exit = {139, 0};
  EXPECT_THAT(end().reason, AllOf(HasSubstr("exit status 139"), HasSubstr("signal 11 (Segmentation fault)")));
}

// As torchrun of torch 1.13 fails on Python 3.11, and as it reports a script that failed.
TEST_F(Classify, ALauncherThatFailsByItselfIsNotTheScripts) {
  const std::string own =
      "Traceback (most recent call last):\n"
      "  File \"<frozen runpy>\", line 198, in _run_module_as_main\n"
      "  File \"/usr/lib/python3/dist-packages/torch/distributed/run.py\", line 766, in <module>\n    main()\n"
      "  File \"/usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py\", line 162, in "
      "to_map\n"
      "    map[i] = val_or_map.get(i, Std.NONE)\n             ^^^^^^^^^^^^^^\n";
  stderr_is(own + "AttributeError: 'NoneType' object has no attribute 'get'\n");
  EXPECT_EQ(end().reason,
            "torchrun failed by itself: AttributeError: 'NoneType' object has no attribute 'get' (exit status 1)");
  const std::string script =
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nValueError: mine\n";
  const std::string child = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nt.py FAILED\n";
  stderr_is(script + "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0\n" + own +
            child);
  EXPECT_EQ(end().reason, "exit status 1: ValueError: mine");
  stderr_is(own + child);
  EXPECT_THAT(end().reason, Not(HasSubstr("by itself")));
}

TEST_F(Classify, DeepSpeedsStepsRefineACompletedTrial) {
  facts_.exit = {0, 0};
  facts_.config = {{"train_batch_size", 8}, {"gradient_accumulation_steps", 1}};
  metrics_are(R"({"fwd": 600, "bwd": 300, "step": 100, "latency": 1000, "throughput": 8000, "FLOPS_per_gpu": 5})");
  std::string log;
  for (int step = 1; step <= 6; ++step) {
    log += fmt::format(
        "epoch=0/micro_step=1/global_step={}, RunningAvgSamplesPerSec=1, CurrSamplesPerSec={}, "
        "MemAllocated=1.0GB, MaxMemAllocated=0.5GB\n",
        step, step == 6 ? 4000 : 8000);
  }
  write_text(dir() / kStdoutFile, log);
  EXPECT_EQ(end().metrics["latency"], 500) << "the file's step took twice as long as the others";
  EXPECT_EQ(end().metrics["latency_steps"], 3);
  EXPECT_EQ(end().peak_bytes, uint64_t{1} << 29);
  EXPECT_EQ(end().peak_source, "log");
  EXPECT_THAT(read_text(dir() / kMetricsFile), HasSubstr("1000")) << "the trial's own file stays";
  metrics_are(good_);
  EXPECT_EQ(end().peak_bytes, 5u);
  EXPECT_EQ(end().peak_source, "metrics");
}

TEST_F(Classify, AScriptThatGoesOnFromACheckpointPassesTheWindow) {
  std::string log;
  for (int step = 5001; step <= 5004; ++step) {
    log += fmt::format("epoch=9/micro_step=1/global_step={}, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=8\n", step);
  }
  write_text(dir() / kStdoutFile, log);
  facts_.timed_out = "ran longer than 30 min";
  EXPECT_THAT(end().reason, AllOf(HasSubstr("30 min"), HasSubstr("checkpoint"), HasSubstr("step 3")));
  facts_.timed_out.clear();
  facts_.exit = {0, 0};
  EXPECT_THAT(end().reason, AllOf(HasSubstr("checkpoint"), HasSubstr("--trial-cwd copy; "), HasSubstr("{trial_dir}")));
  EXPECT_TRUE(end().from_checkpoint);
  facts_.model_info = true;
  EXPECT_THAT(end().reason, Not(HasSubstr("checkpoint")));
  EXPECT_FALSE(end().from_checkpoint);
}

TEST_F(Classify, AFirstPrintedStepBeyondTheWindowsStartIsACheckpoints) {
  const auto first_printed_is = [this](int step) {
    write_text(dir() / kStdoutFile, fmt::format("epoch=0/micro_step=1/global_step={}, CurrSamplesPerSec=8\n", step));
  };
  facts_.exit = {0, 0};
  first_printed_is(5);
  EXPECT_TRUE(end().from_checkpoint);
  facts_.config["steps_per_print"] = 5;
  EXPECT_TRUE(end().from_checkpoint) << "a trial prints every step whatever the file says";
  first_printed_is(3);
  EXPECT_THAT(end().reason, HasSubstr("profile window")) << "step 3 is in it";
  EXPECT_FALSE(end().from_checkpoint);
}

TEST_F(Classify, ACheckpointWithinTheWindowLeavesDeepSpeedWithoutItsFlops) {
  stderr_is(
      "Traceback (most recent call last):\n  File \"engine.py\", line 512, in __getattr__\n"
      "AttributeError: 'DeepSpeedEngine' object has no attribute 'flops'. Did you mean: 'float'?\n");
  const auto steps_from = [this](int step) {
    write_text(dir() / kStdoutFile, fmt::format("[Rank 0] step={}, skipped=0, lr=[0.001]\n"
                                                "[Rank 0] time (ms) | fwd: 0.47 | bwd: 1.25 | step: 1.37\n",
                                                step));
  };
  steps_from(5);
  EXPECT_THAT(end().reason, AllOf(HasSubstr("checkpoint"), HasSubstr("(exit status 1)")));
  EXPECT_TRUE(end().from_checkpoint);
  steps_from(1);
  EXPECT_THAT(end().reason, StartsWith("exit status 1: AttributeError")) << "its model is never called, say";
  steps_from(5);
  stderr_is("Traceback (most recent call last):\n  File \"train.py\", line 3\nKeyError: 'labels'\n");
  EXPECT_EQ(end().reason, "exit status 1: KeyError: 'labels'") << "that is the script's own";
}

TEST_F(Classify, ACheckpointInAFolderThatTrialsShareIsNoted) {
  facts_.exit = {0, 0};
  metrics_are(good_);
  write_text(dir() / kStdoutFile, "[Torch] Saving ck/global_step4/mp_rank_00_model_states.pt...\n");
  facts_.cwd = "/home/ann";
  EXPECT_EQ(end().checkpoint_outside, "/home/ann/ck");
  facts_.cwd = dir() / kCwdFolder;
  EXPECT_EQ(end().checkpoint_outside, "");
  std::filesystem::create_directories(dir() / kProbeFolder);
  const auto saved = [&](const std::string& folder) {  // newer engines do not print it
    const Json file{{"schema", 1}, {"rank", 0}, {"world_size", 1}, {"torch", {}}, {"deepspeed", {}}, {"device", {}},
                    {"process", {}}, {"batches", {}}, {"checkpoint", folder}};
    write_text(dir() / kProbeFolder / "rank0.json", file.dump());
    return end().checkpoint_outside;
  };
  EXPECT_EQ(saved("/home/ann/new"), "/home/ann/new");
  EXPECT_EQ(saved((dir() / "new").string()), "");
}

TEST_F(Classify, APipelinesLinesStandForTheMetricFileThatItDoesNotWrite) {
  std::string log;
  for (int step = 1; step <= 20; ++step) {
    log += fmt::format("steps: {} loss: 2.3 iter time (s): 0.002 samples/sec: 4000.0\n", step);
  }
  write_text(dir() / kStdoutFile, log);
  facts_.exit = {0, 0};
  EXPECT_EQ(end().outcome, Outcome::completed);
  EXPECT_DOUBLE_EQ(end().metrics["throughput"], 4000);
  EXPECT_DOUBLE_EQ(end().metrics["latency"], 2000);
  metrics_are(good_);
  EXPECT_EQ(end().metrics["throughput"], 8000) << "a file goes first";
  std::filesystem::remove(dir() / kMetricsFile);
  facts_.exit = {1, 0};
  EXPECT_EQ(end().outcome, Outcome::failed);
  facts_.timed_out = "ran longer than 30 min";
  EXPECT_EQ(end().outcome, Outcome::completed);
  stderr_is("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
}

TEST_F(Classify, ALoadersWorkerThatTheKernelKilledIsHostMemory) {
  for (const char* line : {"RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
                           "RuntimeError: DataLoader worker (pid(s) 4711, 4712) exited unexpectedly"}) {
    stderr_is(std::string(line) + "\n");
    facts_.kernel_oom_kills = false;
    EXPECT_EQ(end().outcome, Outcome::failed) << line;
    facts_.kernel_oom_kills = true;
    EXPECT_EQ(end().outcome, Outcome::out_of_memory) << line;
    EXPECT_TRUE(end().of_host) << line;
  }
}

TEST_F(Classify, ARankThatTheKernelKilledIsHostMemoryWhateverStartedIt) {
  facts_.kernel_oom_kills = true;
  for (const char* line : {"run.sh: line 1:  6087 Killed                  python3 train.py",
                           "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"}) {
    stderr_is(std::string(line) + "\n");
    EXPECT_EQ(end().outcome, Outcome::out_of_memory) << line;
  }
}

TEST_F(Classify, SaysInOneLineWhatCouldNotBeRead) {
  stderr_is("ValueError: x\n");
  write_text(dir() / kStdoutFile, "");
  std::filesystem::resize_file(dir() / kStdoutFile, uintmax_t{10} << 30);  // a sparse file
  EXPECT_THAT(end().warnings, ElementsAre(AllOf(HasSubstr("stdout.log"), HasSubstr("10.7 GB"))));
  std::filesystem::resize_file(dir() / kStdoutFile, 0);
  facts_.expects_rank_logs = true;
  EXPECT_THAT(end().warnings, ElementsAre(HasSubstr("rank_logs")));
  metrics_are(good_);
  EXPECT_EQ(end().outcome, Outcome::completed);
}

TEST_F(Classify, AResultThatIsNoResultsSizeIsNotRead) {
  facts_.exit = {0, 0};
  metrics_are("{}");
  std::filesystem::resize_file(dir() / kMetricsFile, uintmax_t{3} << 30);
  EXPECT_THAT(end().reason, AllOf(HasSubstr("metrics.json"), HasSubstr("1048576 bytes")));
}

TEST_F(Classify, AFileThatFailsToBeReadIsTheReason) {
  facts_.exit = {0, 0};
  std::filesystem::create_symlink("/proc/self/mem", dir() / kMetricsFile);  // EIO at its beginning
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, AllOf(HasSubstr("metrics.json"), HasSubstr("Input/output error")));
}

TEST_F(Classify, NoLineOfATrialIsLong) {
  stderr_is(std::string(200000, 'x') + "\n");
  EXPECT_LE(end().reason.size(), 2000u);
  EXPECT_LE(end().last_line.size(), 2000u);
  for (const std::string& line : end().tail) EXPECT_LE(line.size(), 2000u);
}

TEST_F(Classify, AnEndlessNumberInAMessageIsNoMatter) {
  stderr_is("CUDA out of memory. Tried to allocate " + std::string(200000, '9') + " MiB\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
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

TEST_F(Classify, SaysThatAScriptEndedBeforeTheWindow) {
  facts_.exit = {0, 0};
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, HasSubstr("end_profile_step is 5"));
  EXPECT_THAT(end().reason, HasSubstr("at least 6"));
  facts_.model_info = true;
  EXPECT_THAT(end().reason, HasSubstr("model_info.json"));
}

TEST_F(Classify, AnExceptionIsTheReasonWhateverTheStatus) {
  facts_.exit = {0, 0};  // tee's, in `python3 train.py 2>&1 | tee log.txt`
  const std::string trace = "Traceback (most recent call last):\n  File \"t.py\", line 1\nKeyError: 'labels'\n";
  for (const bool is_joined : {false, true}) {
    stderr_is(is_joined ? "" : trace);
    write_text(dir() / kStdoutFile, is_joined ? trace : "");
    EXPECT_EQ(end().reason, "the script ended with status 0 and without a result: KeyError: 'labels'");
  }
  stderr_is(trace + "it went on without labels\n");
  EXPECT_THAT(end().reason, AllOf(HasSubstr("at least 6"), HasSubstr("had printed KeyError")));
  facts_.model_info = true;
  EXPECT_THAT(end().reason, AllOf(HasSubstr("forward pass"), HasSubstr("had printed KeyError")));
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
  stderr_is(
      "RuntimeError: rank 1 gives up\nsrun: error: n2: task 1: Exited with exit code 1\n"
      "slurmstepd-n1: error: *** STEP 3.0 ON n1 CANCELLED AT 2026-11-22T23:00:00 ***\nTerminated\n");
  EXPECT_EQ(end().last_line, "RuntimeError: rank 1 gives up") << "Slurm ends the other ranks, and says so";
  stderr_is("[2024-01-01 00:00:00] [ERROR] [launch.py:321:sigkill_handler] pid 7\n");
  EXPECT_THAT(end().last_line, HasSubstr("launch.py"));  // better than nothing
}

TEST_F(Classify, NamesASignal) {
  facts_.exit = {-1, SIGABRT};
  EXPECT_EQ(end().reason, "killed by signal 6 (Aborted)");
}

}  // namespace
}  // namespace dsat::host
