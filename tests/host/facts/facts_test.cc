// What is known of a study, from journals that are written here trial by trial.
#include "dsat/host/facts.h"

#include <gtest/gtest.h>

#include "facts/sections.h"
#include "record/journal.h"
#include "record/run_lock.h"
#include "support/temp_dir.h"

namespace dsat::host {
namespace {

Json config_of(int stage, int micro_batch, bool overlap = false) {
  return {{"train_batch_size", micro_batch * 2},
          {"train_micro_batch_size_per_gpu", micro_batch},
          {"gradient_accumulation_steps", 1},
          {"zero_optimization", {{"stage", stage}, {"overlap_comm", overlap}}}};
}

// One minute a trial, one after the other, on two slots.
class FactsTest : public ::testing::Test {
 protected:
  FactsTest() : journal_(Journal::create(dir_.path())) {
    meta("settings", {{"metric", "throughput"},
                      {"direction", "maximize"},
                      {"max_trials", 20},
                      {"data_parallel_size", 2},
                      {"slots_per_trial", 2},
                      {"zero_stages", {0, 1, 2}}});
    meta("plan", {{"runner", "local"}, {"variables", {"TOKEN=secret", "A=1"}}, {"user_config", config_of(0, 1)}});
  }

  Trial trial(const Json& config, std::optional<double> throughput, Outcome outcome = Outcome::completed) {
    Trial trial;
    trial.record.id = next_;
    trial.record.config = config;
    trial.record.overrides = Json::object();
    trial.record.outcome = outcome;
    if (throughput) trial.record.metrics = {{"throughput", *throughput}};
    trial.record.slots = {"0", "1"};
    trial.record.attempt = 1;
    trial.record.submitted_at = "2026-01-01T00:00:00.000000Z";
    trial.record.started_at = time(next_);
    trial.record.ended_at = time(next_ + 1);
    trial.identity = config.dump();
    trial.state = TrialState::delivered;
    ++next_;
    return trial;
  }
  void put(const Trial& trial) {
    journal_->begin();
    journal_->put_trial(trial);
    journal_->commit();
  }
  void meta(const std::string& key, const Json& value) {
    journal_->begin();
    journal_->put_meta(key, value);
    journal_->commit();
  }
  void best(uint64_t trial, const Json& config, double value) {
    meta("best",
         {{"trial", trial}, {"config", config}, {"metrics", {{"throughput", value}}}, {"metric", value}, {"why", ""}});
  }
  StudyFacts facts() const {
    const auto facts = read_study_facts(dir_.path());
    EXPECT_TRUE(facts.ok()) << facts.status().message();
    return facts.value();
  }
  static std::string time(uint64_t minute) {
    return "2026-01-01T00:" + std::string(minute < 10 ? "0" : "") + std::to_string(minute) + ":00.000000Z";
  }

  TempDir dir_;
  std::unique_ptr<Journal> journal_;
  uint64_t next_ = 0;
};

TEST_F(FactsTest, AStudyWithoutATrialHasNothingToTell) {
  const StudyFacts none = facts();
  EXPECT_TRUE(none.trials.empty());
  EXPECT_EQ(none.progress.max_trials, 20);
  EXPECT_FALSE(none.progress.elapsed_seconds);
  EXPECT_FALSE(none.payback.saved_device_hours_per_day);
  EXPECT_EQ(none.stages.size(), 3u) << "those that are searched";
  EXPECT_EQ(to_json(none)["trials"], Json::array());
}

TEST_F(FactsTest, TheGainIsPaidBackInDeviceHours) {
  Trial own = trial(config_of(0, 1), 100);
  own.record.kind = TrialKind::baseline;
  put(own);
  put(trial(config_of(2, 4), 200));
  meta("spent_device_hours", 4.0 / 60);
  best(1, config_of(2, 4), 200);
  const StudyFacts known = facts();
  EXPECT_EQ(known.baseline, 0u);
  EXPECT_NEAR(known.gain->ratio, 2, 1e-9) << "known before the study has ended";
  EXPECT_DOUBLE_EQ(known.payback.spent_device_hours, 4.0 / 60);
  EXPECT_NEAR(*known.payback.saved_device_hours_per_day, 24, 1e-9);
  EXPECT_NEAR(*known.payback.days, 4.0 / 60 / 24, 1e-12);
  EXPECT_TRUE(known.changed_train_batch);
}

TEST_F(FactsTest, MoreDevicesAloneSaveNothing) {
  const auto sized = [](int devices) {
    Json config = config_of(0, 8);
    config["autotuning"] = {{"num_gpus", devices}, {"num_nodes", 1}};
    return config;
  };
  Trial own = trial(sized(2), 110), wide = trial(sized(8), 440);
  own.record.kind = TrialKind::baseline;
  wide.record.slots = {"0-7"};
  put(own);
  put(wide);
  best(1, config_of(0, 8), 440);
  EXPECT_NEAR(facts().gain->ratio, 4, 1e-9);
  EXPECT_EQ(facts().payback.saved_device_hours_per_day, 0);
  put(trial(sized(2), 120));
  put(trial(sized(2), 140));
  const std::vector<Knob> knobs = facts().knobs;
  ASSERT_EQ(knobs.size(), 1u);
  EXPECT_EQ(knobs[0].key, "autotuning.num_gpus");
}

TEST_F(FactsTest, WithoutABaselineYourOwnConfigurationIsATrialAsAnyOther) {
  Trial own = trial(config_of(0, 1), 100);
  own.record.kind = TrialKind::baseline;
  put(own);
  put(trial(config_of(2, 8), 400));
  best(1, config_of(2, 8), 400);
  EXPECT_TRUE(facts().gain);
  meta("plan", {{"runner", "local"}, {"baseline", false}, {"user_config", config_of(0, 1)}});
  EXPECT_FALSE(facts().gain);
  EXPECT_FALSE(facts().baseline);
}

TEST_F(FactsTest, YourOwnConfigurationMayBeATrialOfTheProfile) {
  put(trial(config_of(0, 1), 100));
  put(trial(config_of(2, 8), 400));
  best(1, config_of(2, 8), 400);
  EXPECT_FALSE(facts().baseline);
  meta("own", config_of(0, 1).dump());
  EXPECT_EQ(facts().baseline, 0u);
  EXPECT_TRUE(facts().gain);
}

TEST_F(FactsTest, AResumedStudyHasItsTimeBudgetAnew) {
  const RunLock live = RunLock::take(dir_.path());
  put(trial(config_of(0, 1), 100));
  Json settings{{"metric", "throughput"}, {"max_trials", 20}, {"time_budget_ms", 3'600'000}};
  meta("settings", settings);
  EXPECT_EQ(facts().progress.seconds_left, 0) << "the first trial ran long ago";
  settings["resumed_at"] = "2200-01-01T00:00:00.000000Z";
  meta("settings", settings);
  EXPECT_EQ(facts().progress.seconds_left, 19 * 60);
}

TEST_F(FactsTest, EveryRunOfATrialWasSpent) {
  put(trial(config_of(0, 1), 100));
  meta("spent_device_hours", 3);
  EXPECT_DOUBLE_EQ(facts().payback.spent_device_hours, 3) << "with those that were repeated";
}

TEST_F(FactsTest, ASimulatedSlotIsARangeOfDevices) {
  Trial wide = trial(config_of(0, 1), 100);
  wide.record.slots = {"8-15"};
  put(wide);
  EXPECT_EQ(facts().trials[0].devices, 8);
}

TEST_F(FactsTest, ABestThatIsNoFasterSavesNothing) {
  Trial own = trial(config_of(0, 1), 100);
  own.record.kind = TrialKind::baseline;
  put(own);
  best(0, config_of(0, 1), 100);
  const StudyFacts known = facts();
  EXPECT_EQ(known.payback.saved_device_hours_per_day, 0);
  EXPECT_FALSE(known.payback.days);
  EXPECT_TRUE(known.changes.empty());
}

TEST_F(FactsTest, ChangesAreThoseOfTheLeaves) {
  const Json own = {{"a", 1}, {"z", {{"x", 5e8}, {"only", true}}}, {"autotuning", {{"enabled", true}}}};
  const Json best = {{"a", 1}, {"z", {{"x", 500000000}, {"new", {1, 2}}}}};
  const auto changes = changes_between(own, best);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].key, "z.new");
  EXPECT_EQ(changes[0].best, Json({1, 2}));
  EXPECT_TRUE(changes[0].own.is_null());
  EXPECT_EQ(changes[1].key, "z.only");
  EXPECT_TRUE(changes[1].best.is_null());
}

TEST_F(FactsTest, DeepSpeedsDefaultIsNoChangeOfAKeyThatYouLeaveOut) {
  const auto changed = [](const Json& own, const Json& best) {
    return changes_between({{"zero_optimization", own}}, {{"zero_optimization", best}}).size();
  };
  EXPECT_EQ(changed({{"stage", 1}}, {{"stage", 1}, {"reduce_scatter", true}, {"reduce_bucket_size", 5e8}}), 0u);
  EXPECT_EQ(changed({{"stage", 1}}, {{"stage", 3}, {"overlap_comm", true}}), 1u) << "stage 3 overlaps anyway";
  EXPECT_EQ(changed({{"stage", 1}}, {{"stage", 1}, {"overlap_comm", true}}), 1u);
  EXPECT_EQ(changed({{"reduce_scatter", false}}, {{"stage", 0}, {"reduce_scatter", true}}), 1u) << "you gave another";
  EXPECT_TRUE(changes_between(Json::object(), {{"zero_optimization", {{"stage", 0}}}}).empty());
}

// Else nothing names the learning rate, and the next long run trains with another batch than it was chosen for.
TEST_F(FactsTest, BatchSizesThatYourOwnFileLeavesOutFollowFromThoseInIt) {
  const Json best_config{
      {"train_micro_batch_size_per_gpu", 4}, {"gradient_accumulation_steps", 1}, {"train_batch_size", 8}};
  put(trial(best_config, 100));
  best(0, best_config, 100);
  const auto changed = [&](const Json& own) {
    meta("plan", {{"runner", "local"}, {"baseline", false}, {"user_config", own}});
    return facts().changed_train_batch;
  };
  EXPECT_TRUE(changed({{"train_micro_batch_size_per_gpu", 1}}));
  EXPECT_EQ(facts().changes.front().own, 1);
  EXPECT_EQ(facts().changes.back().own, 2) << "the train batch, of two ranks";
  EXPECT_FALSE(changed({{"train_micro_batch_size_per_gpu", 4}}));
  EXPECT_FALSE(changed({{"train_micro_batch_size_per_gpu", "auto"}})) << "nobody knows it";
  EXPECT_FALSE(changed({{"train_micro_batch_size_per_gpu", 3}, {"train_batch_size", 8}}))
      << "they contradict each other";
  const auto with_flag = [&](const char* micro_batches) {
    meta("plan", {{"runner", "local"},
                  {"baseline", false},
                  {"hugging_face", true},
                  {"command", {"python3", "t.py", "--gradient_accumulation_steps", micro_batches}},
                  {"user_config", {{"train_micro_batch_size_per_gpu", 1}, {"gradient_accumulation_steps", "auto"}}}});
    return facts().changed_train_batch;
  };
  EXPECT_FALSE(with_flag("4")) << "the command's flag makes it 8, too";
  EXPECT_TRUE(with_flag("2"));
  EXPECT_EQ(to_json(facts())["best"], to_json(facts())["study"]["best"]);
}

TEST_F(FactsTest, AnAxisOfYourOwnConfigurationHasItsFirstValue) {
  const Json config = config_of(1, 4);
  Json own = config;
  own["zero_optimization"]["overlap_comm"] = {false, true};
  own["betas"] = {0.9, 0.999};
  put(trial(config, 100));
  best(0, config, 100);
  meta("settings", {{"metric", "throughput"}, {"base_config", config}});
  meta("plan", {{"runner", "local"}, {"baseline", false}, {"user_config", own}});
  ASSERT_EQ(facts().changes.size(), 1u);
  EXPECT_EQ(facts().changes[0].key, "betas") << "a list that is no axis stays one";
  meta("plan", {{"runner", "sim"},
                {"command", Json::array()},
                {"config_file", "trace"},
                {"simulation", {{"file", "old/trace.csv"}, {"trace", "slots\n"}}},
                {"user_config", own}});
  EXPECT_TRUE(facts().changes.empty());
  EXPECT_FALSE(facts().has_own) << "a trace is nobody's configuration";
}

TEST_F(FactsTest, StagesCountWhatRanThere) {
  put(trial(config_of(1, 4), 10));
  put(trial(config_of(1, 8), 30));
  put(trial(config_of(1, 16), {}, Outcome::out_of_memory));
  put(trial(config_of(2, 16), {}, Outcome::failed));
  const StageFacts one = facts().stages[1], two = facts().stages[2];
  EXPECT_EQ(one.trials, 3);
  EXPECT_EQ(one.out_of_memory, 1);
  EXPECT_EQ(one.best_trial, 1u);
  EXPECT_EQ(one.largest_that_fitted, 8);
  EXPECT_EQ(one.smallest_out_of_memory, 16);
  EXPECT_EQ(two.failed, 1);
  EXPECT_FALSE(two.best_trial);
}

TEST_F(FactsTest, TheBestPathFollowsTheEndsOfTrials) {
  Trial late = trial(config_of(1, 4), 10);
  late.record.ended_at = time(30);
  put(late);
  put(trial(config_of(1, 8), 30));
  put(trial(config_of(1, 2), 20));
  put(trial(config_of(1, 9), 40));
  const StudyFacts known = facts();
  ASSERT_EQ(known.best_path.size(), 2u);
  EXPECT_EQ(known.best_path[0].trial, 1u);
  EXPECT_EQ(known.best_path[1].trial, 3u);
}

TEST_F(FactsTest, AKeyThatDecidesTheMetricStandsFirst) {
  for (int i = 0; i < 12; ++i) put(trial(config_of(i % 2, 1 + i, i % 3 == 0), i % 3 == 0 ? 100 + i : 10 + i));
  const StudyFacts known = facts();
  ASSERT_FALSE(known.knobs.empty());
  EXPECT_EQ(known.knobs[0].key, "zero_optimization.overlap_comm");
  EXPECT_GT(known.knobs[0].share, 0.8);
  EXPECT_EQ(known.knobs[0].values.size(), 2u);
  for (const Knob& knob : known.knobs) {
    EXPECT_NE(knob.key, "train_batch_size") << "follows from others";
    EXPECT_LE(knob.values.size(), 6u) << "many numbers fall into ranges";
  }
}

TEST_F(FactsTest, OnlyALiveStudyHasRunningTrials) {
  Trial open = trial(config_of(1, 4), {});
  open.record.outcome.reset();
  open.record.ended_at.clear();
  open.state = TrialState::running;
  put(open);
  EXPECT_EQ(facts().trials[0].place, TrialPlace::waiting);
  EXPECT_EQ(facts().record.status, StudyStatus::interrupted);
  const auto lock = RunLock::take(dir_.path());
  const StudyFacts live = facts();
  EXPECT_EQ(live.trials[0].place, TrialPlace::running);
  EXPECT_GT(*live.trials[0].run_seconds, 60) << "until now";
  EXPECT_EQ(live.progress.running, 1);
}

TEST_F(FactsTest, ValuesOfVariablesAreLeftOut) {
  const auto experiment = [](const Json& variables) {
    return Json{{"environment", {{"environment_variables", variables}, {"registry_auth", {{"password", "hidden"}}}}},
                {"checkpoint_storage", {{"type", "s3"}, {"secret_key", "hidden"}}}};
  };
  const Json list{"TOKEN=hidden", "A=1"};
  meta("settings", {{"variables", list}, {"experiment", experiment(list)}});
  meta("plan", {{"variables", list}, {"experiment", experiment({{"TOKEN", "hidden"}, {"cpu", list}})}});
  EXPECT_EQ(facts().plan["variables"], Json({"TOKEN", "A"}));
  EXPECT_EQ(facts().record.study["experiment"]["environment"]["environment_variables"], Json({"TOKEN", "A"}));
  EXPECT_EQ(facts().plan["experiment"]["environment"]["environment_variables"],
            Json({{"TOKEN", nullptr}, {"cpu", {"TOKEN", "A"}}}));
  EXPECT_EQ(to_json(facts()).dump().find("hidden"), std::string::npos);
}

TEST_F(FactsTest, NoSecretIsPassedOnAndTheJournalKeepsAll) {
  const Json command{
      "env",   "HF_TOKEN=s3cret",          "python3", "t\u202E.py", "--api-key", "s3cret", "--password=s3cret",
      "--hub", "https://ann:s3cret@hub/x", "--lr",    "0.1"};
  meta("settings",
       {{"metric", "throughput"}, {"command", command}, {"hyperparameters", {{"db", {{"password", "s3cret"}}}}}});
  meta("plan", {{"runner", "local"}, {"command", command}, {"user_config", config_of(0, 1)}});
  Json config = config_of(1, 2);
  config["comet"] = {{"api_key", "s3cret"}, {"project", "p"}};
  Trial failed = trial(config, {}, Outcome::failed);
  failed.record.reason = "401 of https://ann:s3cret@hub/x";
  failed.record.note = "with api_key=s3cret";
  failed.end.emplace();
  failed.end->tail = {"Authorization: Bearer s3cret"};
  failed.end->warnings = {"token=s3cret"};
  put(failed);
  put(trial(config, 2.0));
  const StudyFacts read = facts();
  const std::string shown = to_json(read).dump();
  EXPECT_EQ(shown.find("s3cret"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("\u202E"), std::string::npos);
  EXPECT_EQ(read.record.study["command"][3], "t.py");
  EXPECT_EQ(read.record.study["command"][10], "0.1");
  EXPECT_EQ(read.record.trials[0].config["comet"], Json({{"api_key", "***"}, {"project", "p"}}));
  EXPECT_NE(journal_->meta("plan")->dump().find("s3cret"), std::string::npos);
  EXPECT_EQ(journal_->trials().at(0).record.config["comet"]["api_key"], "s3cret");
}

TEST_F(FactsTest, SettingsThatAreDamagedAreLeftOut) {
  meta("settings", 7);
  meta("plan", "x");
  EXPECT_EQ(facts().record.study, Json::object());
  EXPECT_EQ(facts().plan, Json::object());
}

TEST_F(FactsTest, ABestThatIsNoTrialIsNone) {
  best(7, config_of(1, 1), 5);
  EXPECT_FALSE(facts().record.best);
}

TEST_F(FactsTest, AFolderWithoutAStudyIsRefusedInOneLine) {
  const auto none = read_study_facts(dir_.path() / "none");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace dsat::host
