// Studies over a surface: virtual time, noise, what is written and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <set>

#include "dsat/host/rescue.h"
#include "surfaces.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SimulatedStudy, RunsTheWholeSearchAndWritesNothing) {
  StudyOptions options = options_for(small_model);
  options.max_trials = 30;
  Recorder seen;
  const StudyResult result = run(options, seen);
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  EXPECT_EQ(seen.ended.size(), 30u);
  EXPECT_TRUE(result.dir.empty());
  ASSERT_TRUE(result.best);
  EXPECT_GT(samples_of(result.best->config), 90);
  EXPECT_LE(samples_of(result.best->config), 105);
}

TEST(SimulatedStudy, TimesAreVirtual) {
  StudyOptions options = options_for(small_model);
  options.max_trials = 3;
  options.searcher.plugin = std::string(DSAT_PLUGINS) + "/librandom.so";
  Recorder seen;
  run(options, seen);
  ASSERT_EQ(seen.ended.size(), 3u);
  EXPECT_EQ(seen.ended[0].started_at, "2000-01-01T00:00:00.000000Z");
  EXPECT_EQ(seen.ended[0].ended_at, "2000-01-01T00:00:10.000000Z");
  EXPECT_EQ(seen.ended[1].started_at, "2000-01-01T00:00:10.000000Z");
  EXPECT_EQ(seen.ended[2].ended_at, "2000-01-01T00:00:30.000000Z");
}

TEST(SimulatedStudy, TheTimeBudgetAndTheTrialTimeoutAreVirtualToo) {
  StudyOptions options = options_for([](const SimulatedTrial& trial) {
    SimulatedRun run = small_model(trial);
    run.seconds = samples_of(trial.config) > 50 ? 1e7 : 600;
    return run;
  });
  options.time_budget = std::chrono::hours(3);
  options.trial_timeout = std::chrono::minutes(20);
  Recorder seen;
  const StudyResult result = run(options, seen);
  EXPECT_THAT(result.reason, HasSubstr("time budget"));
  const auto late = std::find_if(seen.ended.begin(), seen.ended.end(),
                                 [](const TrialRecord& trial) { return trial.outcome == Outcome::timed_out; });
  ASSERT_NE(late, seen.ended.end());
  EXPECT_THAT(late->reason, AllOf(HasSubstr("20m 0s"), HasSubstr("--trial-timeout")));
}

// A surface learns of a trial's further steps as a script does, and such a trial may run longer in proportion.
TEST(SimulatedStudy, ATrialOfVerifyTrainsFurtherAndTheNextBestFollowsWhereItFails) {
  const auto last_step = [](const SimulatedTrial& trial) {
    return trial.config.value("/autotuning/end_profile_step"_json_pointer, 5);
  };
  int longest = 0;
  StudyOptions options = options_for([&](const SimulatedTrial& trial) {
    SimulatedRun run = small_model(trial);
    longest = std::max(longest, last_step(trial));
    if (run.peak_bytes) *run.peak_bytes += static_cast<uint64_t>(20 * (last_step(trial) - 5));  // it leaks
    if (run.peak_bytes && *run.peak_bytes > 1000000) run.outcome = Outcome::out_of_memory;
    run.seconds = 10 * (last_step(trial) + 1);
    return run;
  });
  options.max_trials = 30;
  options.verify_steps = 1000;
  options.trial_timeout = std::chrono::minutes(2);
  Recorder seen;
  const StudyResult result = run(options, seen);
  ASSERT_TRUE(result.best) << result.reason;
  EXPECT_LE(50000 + 9000 * samples_of(result.best->config) + 20 * 1000, 1000000);
  EXPECT_EQ(longest, 5 + 1000);
  EXPECT_EQ(result.counts.count(Outcome::timed_out), 0u);
}

// A searcher that follows a script (tests/fixtures/plugins/scripted.cc), on two slots.
StudyOptions scripted(const Json& script, FunctionSurface::Function surface) {
  StudyOptions options = options_for(std::move(surface));
  options.searcher = {std::string(DSAT_FIXTURE_PLUGINS) + "/libscripted.so", {{"script", script.dump()}}};
  options.profiler = {std::string(DSAT_FIXTURE_PLUGINS) + "/libscripted.so", Json::object()};
  options.simulation->slots = 2;
  options.simulation->slots_per_trial = 1;
  options.baseline = false;  // a script counts its trials
  options.finals = 0;
  return options;
}

Json try_micro_batch(int64_t samples, bool repeat = false) {
  return {{"try", {{config::kMicroBatchKey, samples}}}, {"repeat", repeat}};
}

// Ends are delivered in the order of their ids, but one that ended waits for an elder one 5 virtual seconds at most.
TEST(SimulatedStudy, OneSlowTrialDoesNotHoldTheOthers) {
  const Json script{{"start", {try_micro_batch(50), try_micro_batch(2)}},
                    {"exit 1", {try_micro_batch(3)}},
                    {"exit 2", {try_micro_batch(4)}}};
  StudyOptions options = scripted(script, [](const SimulatedTrial& trial) {
    SimulatedRun run = small_model(trial);
    if (samples_of(trial.config) == 50) run.seconds = 1000;
    return run;
  });
  Recorder seen;
  run(options, seen);
  std::map<uint64_t, std::string> started;
  for (const TrialRecord& trial : seen.ended) started[trial.id] = trial.started_at.substr(14, 5);
  const std::map<uint64_t, std::string> expected{{0, "00:00"}, {1, "00:00"}, {2, "00:15"}, {3, "00:30"}};
  EXPECT_EQ(started, expected);
}

TEST(SimulatedStudy, ARepeatMeasuresAnew) {
  std::vector<uint64_t> seeds;
  StudyOptions options = scripted({{"start", {try_micro_batch(2), try_micro_batch(2, true), try_micro_batch(2)}}},
                                  [&](const SimulatedTrial& trial) {
                                    seeds.push_back(trial.seed);
                                    return small_model(trial);
                                  });
  Recorder seen;
  run(options, seen);
  ASSERT_EQ(seeds.size(), 2u);  // the third is a duplicate and not run
  EXPECT_NE(seeds[0], seeds[1]);
}

// What a measurement's noise is made of: by configuration and how often it was run before.
TEST(SimulatedStudy, NoiseIsTheSameInEveryStudyOfOneSeed) {
  const auto seeds_of = [](uint64_t seed) {
    auto seeds = std::make_shared<std::map<std::string, uint64_t>>();
    StudyOptions options = options_for([seeds](const SimulatedTrial& trial) {
      (*seeds)[trial.config.dump() + (trial.model_info ? "i" : "")] = trial.seed;
      return small_model(trial);
    });
    options.seed = seed;
    options.max_trials = 12;
    Recorder seen;
    run(options, seen);
    return *seeds;
  };
  const auto first = seeds_of(1);
  EXPECT_EQ(first, seeds_of(1));
  std::set<uint64_t> distinct;
  for (const auto& [config, seed] : first) distinct.insert(seed);
  EXPECT_EQ(distinct.size(), first.size());
  EXPECT_NE(first.begin()->second, seeds_of(2).begin()->second);
}

TEST(SimulatedStudy, ASurfaceThatThrowsFailsTheStudy) {
  StudyOptions options = options_for([](const SimulatedTrial&) -> SimulatedRun { throw Error("the moon is wrong"); });
  Recorder seen;
  const StudyResult result = run(options, seen);
  EXPECT_EQ(result.status, StudyStatus::failed);
  EXPECT_THAT(result.reason, EndsWith("trial 0: the moon is wrong"));
}

TEST(SimulatedStudy, ASurfaceThatThrowsAnythingFailsTheStudy) {
  StudyOptions options = options_for([](const SimulatedTrial&) -> SimulatedRun { throw 7; });
  Recorder seen;
  EXPECT_THAT(run(options, seen).reason, AllOf(HasSubstr("trial 0: "), HasSubstr("std::exception")));
}

TEST(SimulatedStudy, MetricsThatAJournalCannotHoldAreAFailedTrial) {
  const std::map<std::string, Json> cases{{"metrics are 5", 5},
                                          {"throughput is inf", {{"throughput", INFINITY}}},
                                          {"throughput is nan", {{"throughput", NAN}}}};
  for (const auto& [reason, metrics] : cases) {
    StudyOptions options = options_for([wrong = metrics](const SimulatedTrial& trial) {
      SimulatedRun run = small_model(trial);
      if (!trial.model_info) run.metrics = wrong;
      return run;
    });
    options.max_trials = 4;
    Recorder seen;
    EXPECT_FALSE(run(options, seen).best);
    ASSERT_FALSE(seen.ended.empty());
    EXPECT_EQ(seen.ended.back().outcome, Outcome::failed);
    EXPECT_THAT(seen.ended.back().reason, HasSubstr(reason));
  }
}

TEST(SimulatedStudy, AnObserverThatThrowsIsInformedOnceAndTheStudyGoesOn) {
  class Throwing : public Recorder {
    void on_trial_started(const TrialRecord&) override { throw 7; }
    void on_best(const BestRecord&) override { throw std::runtime_error("no room on the screen"); }
  } seen;
  StudyOptions options = options_for(small_model);
  options.max_trials = 5;
  const StudyResult result = run(options, seen);
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  EXPECT_TRUE(result.best);
  EXPECT_EQ(seen.ended.size(), 5u);
  EXPECT_EQ(std::count_if(seen.warnings.begin(), seen.warnings.end(),
                          [](const std::string& line) { return line.find("threw") != std::string::npos; }),
            1);
}

TEST(SimulatedStudy, RefusesAMetricThatTheSurfaceCannotGive) {
  StudyOptions options = options_for(small_model);
  options.simulation->metrics = {"throughput", "latency"};
  options.metric = "flops";
  const Result<std::unique_ptr<Study>> study = Study::create(options);
  ASSERT_FALSE(study.ok());
  EXPECT_EQ(study.status().code(), Status::Code::invalid);
  EXPECT_THAT(study.status().message(), AllOf(StartsWith("--metric flops: "), HasSubstr("throughput, latency")));
}

TEST(SimulatedStudy, RefusesMoreSlotsThanThereAre) {
  StudyOptions options = options_for(small_model);
  options.simulation->slots = 8;
  options.slots = 9;
  EXPECT_THAT(Study::create(options).status().message(), AllOf(HasSubstr("--slots 9"), HasSubstr("8 devices")));
}

TEST(SimulatedStudy, KeepsAJournalButNoTrialFolders) {
  std::string name = (fs::temp_directory_path() / "dsat-sim-XXXXXX").string();
  const fs::path dir = mkdtemp(name.data());
  StudyOptions options = options_for(small_model);
  options.simulation->keep = true;
  options.output_dir = dir / "run";
  options.max_trials = 20;
  Recorder seen;
  const StudyResult result = run(options, seen);
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  EXPECT_FALSE(fs::exists(result.dir / "trials"));
  EXPECT_FALSE(fs::exists(result.dir / "best_cmd.txt"));
  EXPECT_TRUE(fs::exists(result.dir / "best_ds_config.json"));
  const Result<StudyRecord> record = read_study(result.dir);
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->trials.size(), 20u);
  EXPECT_EQ(record->status, StudyStatus::completed);
  for (const TrialRecord& trial : record->trials) {
    EXPECT_TRUE(trial.outcome) << trial.id;
    EXPECT_THAT(trial.started_at, StartsWith("2000-01-01T"));
  }
  EXPECT_TRUE(check_study(result.dir)->sound());
  EXPECT_TRUE(write_best(result.dir, {}).ok());
  EXPECT_THAT(Study::resume(result.dir, {}).status().message(), HasSubstr("simulated by"));
  fs::remove_all(dir);
}

}  // namespace
}  // namespace dsat::host
