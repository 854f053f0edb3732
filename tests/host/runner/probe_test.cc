// The memory probe's files, whatever stands in their place, and what becomes of them.
#include "runner/probe.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDeviceFile =
    R"({"schema": 1, "rank": %, "world_size": 2, "pid": 7, "torch": "2.4.0", "deepspeed": "0.14.5",
        "device": {"type": "cuda", "total_bytes": 8000, "max_allocated_bytes": 100%, "max_reserved_bytes": 3000,
                   "allocator_retries": %, "ooms": 0}, "process": null, "batches": null})";

std::string device_file(int number) {
  std::string text = kDeviceFile;
  for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%')) {
    text.replace(at, 1, std::to_string(number));
  }
  return text;
}

std::string process_file(const std::string& peak) {
  return R"({"schema": 1, "rank": null, "world_size": null, "pid": 7, "torch": "1.13", "deepspeed": null,
             "device": null, "process": {"limit": "RLIMIT_DATA", "limit_bytes": 5000, "peak_bytes": )" +
         peak + R"(}, "batches": null})";
}

class ProbeTest : public TempDirTest {
 protected:
  ProbeTest() { fs::create_directory(folder()); }
  fs::path folder() const { return dir() / kProbeFolder; }
  void write(const std::string& name, const std::string& text) { write_text(folder() / name, text); }
  ProbeReport read() const { return read_probe(dir()); }
  // The one line about a file that cannot be read.
  std::string complaint(const std::string& text) {
    write("rank0.json", text);
    const ProbeReport report = read();
    EXPECT_EQ(report.ranks, 0) << text;
    EXPECT_EQ(report.warnings.size(), 1u) << text;
    return report.warnings.empty() ? "" : report.warnings[0];
  }
};

TEST_F(ProbeTest, TheWorstRankIsTheTrials) {
  write("rank0.json", device_file(3));
  write("rank1.json", device_file(8));
  const ProbeReport report = read();
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.world_size, 2);
  EXPECT_EQ(report.peak_bytes, 1008u);
  EXPECT_EQ(report.device_memory_bytes, 8000u);
  EXPECT_EQ(report.allocator_retries, 8u);
  EXPECT_EQ(report.engine_version, "0.14.5");
  EXPECT_EQ(report.torch_version, "2.4.0");
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST_F(ProbeTest, TheDriverIsNamedWhereTheHookSawOne) {
  std::string text = device_file(3);
  text.replace(text.find("\"device\""), 0, "\"driver\": \"580.95\", ");
  write("rank0.json", text);
  write("rank1.json", device_file(2));
  EXPECT_EQ(read().driver_version, "580.95");
}

TEST_F(ProbeTest, WhatEnginesRanWith) {
  std::string text = device_file(0);
  const std::string member = R"(, "engines": {"0": {"micro_batch": 4, "accumulation": 1, "train_batch": 8, "stage": 2,
      "steps": 6, "inputs": "4x128.4x_"}, "1": {"micro_batch": null, "accumulation": null, "train_batch": null,
      "stage": null, "steps": 0, "inputs": ""}})";
  write("rank0.json", text.insert(text.rfind('}'), member));
  const std::vector<EngineRun> engines = read().engines;
  ASSERT_EQ(engines.size(), 2u);
  EXPECT_EQ(engines[0].micro_batch, 4);
  EXPECT_EQ(engines[0].train_batch, 8);
  EXPECT_EQ(engines[0].stage, 2);
  EXPECT_EQ(engines[0].inputs, "4x128.4x_");
  EXPECT_FALSE(engines[1].stage);
  text.replace(text.find("4x128.4x_"), 9, "4x128;rm");
  EXPECT_THAT(complaint(text), HasSubstr("inputs are no shapes"));
}

TEST_F(ProbeTest, TheSmallestDeviceIsTheTrials) {
  std::string smaller = device_file(8);
  smaller.replace(smaller.find("8000"), 4, "6000");
  write("rank0.json", device_file(3));
  write("rank1.json", smaller);
  write("rank2.json", device_file(4));
  EXPECT_EQ(read().device_memory_bytes, 6000u);
}

TEST_F(ProbeTest, AProcessWithoutADeviceHasItsLimitAsMemory) {
  write("pid7.json", process_file("4000"));
  const ProbeReport report = read();
  EXPECT_EQ(report.peak_bytes, 4000u);
  EXPECT_EQ(report.device_memory_bytes, 5000u);
  EXPECT_EQ(report.allocator_retries, 0u);
  EXPECT_EQ(report.engine_version, "");
}

TEST_F(ProbeTest, AProcessThatDoesNotTrainSaysNothingOfTheMemory) {
  write("pid7.json", process_file("40"));  // python -c "import torch; print(torch.cuda.device_count())"
  write("rank0.json", device_file(3));
  write("rank1.json", device_file(4));
  EXPECT_EQ(read().peak_bytes, 1004u);
  EXPECT_EQ(read().device_memory_bytes, 8000u);
  EXPECT_EQ(read().ranks, 2);
  for (const char* name : {"rank0.json", "rank1.json"}) write(name, process_file("30"));
  EXPECT_EQ(read().peak_bytes, 30u) << "ranks go before processes that are none";
}

TEST_F(ProbeTest, OnOtherHostsTheHookKnowsTheTrialByItsPlace) {
  fs::create_directory(dir() / "hook");
  write_text(dir() / "hook/sitecustomize.py", "# the hook\n");
  Environment environment{"PYTHONPATH=/mine"};
  add_probe(dir() / "hook", dir(), true, environment);
  EXPECT_EQ(get_variable(environment, "PYTHONPATH"), folder().string() + ":/mine");
  EXPECT_EQ(read_file(folder() / "sitecustomize.py"), "# the hook\n");
  EXPECT_EQ(read().ranks, 0) << "it is no rank's file";
  add_probe(dir() / "hook", dir(), false, environment);
  EXPECT_EQ(get_variable(environment, "PYTHONPATH"), (dir() / "hook").string() + ":" + folder().string() + ":/mine");
}

TEST_F(ProbeTest, NoFolderAndNoFilesAreNoNews) {
  EXPECT_EQ(read().ranks, 0);
  fs::remove(folder());
  EXPECT_THAT(read().warnings, IsEmpty());
  write_text(folder(), "a file in its place");
  EXPECT_THAT(read().warnings, IsEmpty());
}

TEST_F(ProbeTest, OtherFilesAreNotLookedAt) {
  for (const char* name : {".rank0.json.17", "rank.json", "rankx.json", "rank0.json.old", "rank-1.json", ".json",
                           "rank99999999999999999999.json", "notes"}) {
    write(name, "{");
  }
  EXPECT_EQ(read().ranks, 0);
  EXPECT_THAT(read().warnings, IsEmpty());
}

TEST_F(ProbeTest, ABadFileCostsItselfAndOneLine) {
  EXPECT_THAT(complaint(""), HasSubstr("left out rank0.json: "));
  EXPECT_THAT(complaint("[]"), AllOf(HasSubstr("rank0.json: "), HasSubstr("no JSON object")));
  EXPECT_THAT(complaint(device_file(1).substr(0, 90)), HasSubstr("left out rank0.json"));
  EXPECT_THAT(complaint("\xff\xfe"), HasSubstr("left out rank0.json"));
  EXPECT_THAT(complaint("{}"), HasSubstr("no schema"));
  EXPECT_THAT(complaint(R"({"schema": 2})"), HasSubstr("schema is not"));
  EXPECT_THAT(complaint(process_file("-1")), AllOf(HasSubstr("peak_bytes is no"), HasSubstr("at least 0")));
  EXPECT_THAT(complaint(process_file("1.5")), HasSubstr("peak_bytes is no"));
  EXPECT_THAT(complaint(process_file("\"a lot\"")), HasSubstr("peak_bytes is no"));
  EXPECT_THAT(complaint(process_file("18000000000000000000")), HasSubstr("peak_bytes is 18000000000000000000"));
  EXPECT_THAT(complaint(process_file("1e99")), HasSubstr("left out rank0.json"));
  EXPECT_THAT(complaint(process_file("NaN")), HasSubstr("left out rank0.json"));
  EXPECT_THAT(complaint(std::string(5000, ' ')), HasSubstr("4096 bytes"));
  EXPECT_THAT(complaint(std::string(4000, '[')), HasSubstr("left out rank0.json"));
}

TEST_F(ProbeTest, TheOthersAreReadAllTheSame) {
  write("rank0.json", device_file(3));
  write("rank1.json", "{");
  fs::create_directory(folder() / "rank2.json");
  ASSERT_EQ(mkfifo((folder() / "rank3.json").c_str(), 0600), 0);
  fs::create_symlink("/nowhere", folder() / "rank4.json");
  const ProbeReport report = read();
  EXPECT_EQ(report.ranks, 1);
  EXPECT_EQ(report.peak_bytes, 1003u);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], HasSubstr("rank1.json"));
  EXPECT_THAT(report.warnings[0], HasSubstr("3 more files"));
}

TEST_F(ProbeTest, TenThousandRanksAreRead) {
  for (int i = 0; i < 10000; ++i) write("rank" + std::to_string(i) + ".json", device_file(i % 10));
  EXPECT_EQ(read().ranks, 10000);
  EXPECT_EQ(read().peak_bytes, 1009u);
}

TEST_F(ProbeTest, AVersionIsNoLongText) {
  std::string text = device_file(1);
  text.replace(text.find("2.4.0"), 5, std::string(100, '2'));
  EXPECT_THAT(complaint(text), HasSubstr("torch is no"));
}

ProbeReport some_report() {
  ProbeReport report;
  report.ranks = 2;
  report.world_size = 2;
  report.peak_bytes = 700;
  report.on_device = true;
  report.device_memory_bytes = 1000;
  report.allocator_retries = 3;
  report.engine_version = "0.14.5";
  return report;
}

TEST(AddToEnd, ACompletedTrialHasTheProbesPeak) {
  TrialEnd end;
  end.outcome = Outcome::completed;
  add_to_end(some_report(), end);
  EXPECT_EQ(end.peak_bytes, 700u);
  EXPECT_EQ(end.peak_source, "probe");
  EXPECT_EQ(end.device_memory_bytes, 1000u);
  EXPECT_EQ(end.allocator_retries, 3u);
  EXPECT_EQ(end.engine_version, "0.14.5");
  EXPECT_FALSE(end.peak_above_bytes);
  EXPECT_THAT(end.warnings, IsEmpty());
}

TEST(AddToEnd, APeakOfAProcessIsCalledOne) {
  ProbeReport report = some_report();
  report.on_device = false;
  TrialEnd end;
  end.outcome = Outcome::completed;
  add_to_end(report, end);
  EXPECT_EQ(end.peak_source, "process");
}

TrialEnd with_a_peak_of_its_own(uint64_t bytes, const ProbeReport& report) {
  TrialEnd end;
  end.outcome = Outcome::completed;
  end.peak_bytes = bytes;
  end.peak_source = kPeakOfMetrics;
  end.device_memory_bytes = 900;
  add_to_end(report, end);
  return end;
}

TEST(AddToEnd, TheResultFileGoesFirst) {
  const TrialEnd end = with_a_peak_of_its_own(750, some_report());
  EXPECT_EQ(end.peak_bytes, 750u);
  EXPECT_EQ(end.peak_source, "metrics");
  EXPECT_EQ(end.device_memory_bytes, 900u);
  EXPECT_EQ(end.allocator_retries, 3u);
}

// An engine that starts resets torch's counters: the script knows what followed, the probe keeps what was before.
TEST(AddToEnd, ALargerPeakOnTheDeviceGoesBeforeTheResultFiles) {
  ProbeReport report = some_report();
  EXPECT_EQ(with_a_peak_of_its_own(650, report).peak_bytes, 700u);
  EXPECT_EQ(with_a_peak_of_its_own(650, report).peak_source, "probe");
  report.on_device = false;
  EXPECT_EQ(with_a_peak_of_its_own(650, report).peak_bytes, 650u) << "a process is no device";
}

TEST(AddToEnd, ATrialOutOfMemoryHasALowerBoundAndNoPeak) {
  TrialEnd end;
  end.outcome = Outcome::out_of_memory;
  add_to_end(some_report(), end);
  EXPECT_FALSE(end.peak_bytes);
  EXPECT_EQ(end.peak_source, "");
  EXPECT_EQ(end.peak_above_bytes, 700u);
  EXPECT_EQ(end.device_memory_bytes, 1000u);
  end.peak_above_bytes = 950;  // the message knows more: it has the request that was refused
  add_to_end(some_report(), end);
  EXPECT_EQ(end.peak_above_bytes, 950u);
}

TEST(AddToEnd, AFailedTrialHasNoPeak) {
  for (const Outcome outcome : {Outcome::failed, Outcome::timed_out, Outcome::stopped}) {
    TrialEnd end;
    end.outcome = outcome;
    add_to_end(some_report(), end);
    EXPECT_FALSE(end.peak_bytes);
    EXPECT_FALSE(end.peak_above_bytes);
  }
}

TEST(AddToEnd, MissingRanksAreNamed) {
  TrialEnd end;
  end.outcome = Outcome::completed;
  ProbeReport report = some_report();
  report.world_size = 4;
  add_to_end(report, end);
  EXPECT_EQ(end.peak_bytes, 700u);
  EXPECT_THAT(end.warnings, ElementsAre(HasSubstr("2 of 4 ranks")));
}

class HookTest : public RunnerTest {
 protected:
  HookTest() { environment_ = {"PATH=/usr/bin:/bin"}; }
  // PYTHONPATH as a trial's command sees it.
  std::string pythonpath_of_a_trial() {
    adjust = [this](TrialRunnerOptions& options) { options.probe = hook_; };
    make_runner_for({"sh", "-c", "echo \"$PYTHONPATH\" > $DSAT_TRIAL_DIR/path", "--deepspeed_config", "user.json"});
    run(spec(0));
    return read_text(trial_dir(0) / "path");
  }
  fs::path hook_ = "/hook";
};

TEST_F(HookTest, ItsFolderComesFirstAndTheUsersStays) {
  set_variable(environment_, "PYTHONPATH", "/the/user's:/other");
  EXPECT_EQ(pythonpath_of_a_trial(), "/hook:/the/user's:/other\n");
  EXPECT_TRUE(fs::is_directory(trial_dir(0) / kProbeFolder));
  EXPECT_THAT(read_text(trial_dir(0) / kCommandFile), ::testing::Not(HasSubstr("/hook")));
}

TEST_F(HookTest, AnEmptyPathGetsNoEmptyEntry) {
  set_variable(environment_, "PYTHONPATH", "");
  EXPECT_EQ(pythonpath_of_a_trial(), "/hook\n");
}

TEST_F(HookTest, WithoutAProbeNothingChanges) {
  hook_.clear();
  set_variable(environment_, "PYTHONPATH", "/mine");
  EXPECT_EQ(pythonpath_of_a_trial(), "/mine\n");
  EXPECT_FALSE(fs::exists(trial_dir(0) / kProbeFolder));
}

// Where dsat is installed, with the hook beside the launcher.
fs::path installed_launcher(const fs::path& folder) {
  fs::create_directories(folder);
  fs::copy(fs::path(DSAT_LAUNCH).parent_path() / kProbeFolder, folder / kProbeFolder);
  return folder / "dsat-launch";
}

TEST_F(HookTest, IsFoundBesideTheLauncher) {
  const fs::path launcher = installed_launcher(dir() / "bin");
  std::vector<std::string> notices;
  EXPECT_EQ(find_probe(launcher, dir() / "run", false, notices), dir() / "bin" / kProbeFolder);
  EXPECT_THAT(notices, IsEmpty());
}

TEST_F(HookTest, IsCopiedWherePythonCouldNotKeepWhatItCompiles) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const fs::path launcher = installed_launcher(dir() / "bin");
  fs::permissions(dir() / "bin" / kProbeFolder, fs::perms::owner_read | fs::perms::owner_exec);
  std::vector<std::string> notices;
  EXPECT_EQ(find_probe(launcher, dir() / "run", false, notices), dir() / "run" / kProbeFolder);
  EXPECT_THAT(notices, IsEmpty());
  fs::permissions(dir() / "bin" / kProbeFolder, fs::perms::owner_all);
}

TEST_F(HookTest, OtherHostsHaveACopyInTheRunDirectory) {
  std::vector<std::string> notices;
  EXPECT_EQ(find_probe(DSAT_LAUNCH, dir() / "run", true, notices), dir() / "run" / kProbeFolder);
  EXPECT_THAT(read_text(dir() / "run" / kProbeFolder / "sitecustomize.py"), HasSubstr("memory probe"));
}

TEST_F(HookTest, AMissingHookIsOneLine) {
  std::vector<std::string> notices;
  EXPECT_EQ(find_probe("/nowhere/dsat-launch", dir(), false, notices), fs::path());
  EXPECT_THAT(notices, ElementsAre(AllOf(HasSubstr("/nowhere/probe/sitecustomize.py "), HasSubstr("--no-probe"))));
}

TEST_F(HookTest, PythonpathCannotNameAColon) {
  fs::create_directories(dir() / "a:b" / kProbeFolder);
  write_text(dir() / "a:b" / kProbeFolder / "sitecustomize.py", "");
  std::vector<std::string> notices;
  EXPECT_EQ(find_probe(dir() / "a:b" / "dsat-launch", dir(), false, notices), fs::path());
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("colon"));
}

}  // namespace
}  // namespace dsat::host
