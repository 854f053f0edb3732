// What follows the search: the finals, the verification, the comparison with the user's own configuration.
#include <fmt/format.h>

#include "dsat/config/json.h"
#include "dsat/host/format.h"
#include "dsat/host/rescue.h"
#include "finals/comparison.h"
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::StartsWith;

// Micro batches 2, 4, 8 and then the end; 8 is the best, and far from all others.
Json three_trials() {
  return {{"start", {try_micro_batch(2), try_micro_batch(4), try_micro_batch(8)}},
          {"exit 3", {{{"finish", "three are enough"}}}}};
}

class FinalsStudyTest : public StudyTest {
 protected:
  StudyOptions with_finals(const Json& script = three_trials()) {
    StudyOptions given = scripted(script);
    given.baseline = true;
    given.finals.reset();
    given.max_trials = 24;
    return given;
  }
  // A peak above 900 keeps a configuration from being the best.
  StudyOptions with_margin() {
    StudyOptions given = with_finals();
    given.device_memory_bytes = 1000;
    given.memory_margin = 0.1;
    return given;
  }
  static double throughput(int64_t micro_batch) { return 100.0 * static_cast<double>(micro_batch); }
  static TrialEnd answer(const TrialSpec& spec) { return completed(throughput(micro_batch(spec.config))); }
  StudyResult run(Session& session) {
    session.runner.answer = answer;
    return session.run_new();
  }
  static std::vector<std::string> phases(const Session& session) {
    constexpr const char* kNames[] = {"profiler",     "baseline", "searcher",  "finals",
                                      "verification", "twin",     "comparison"};
    std::vector<std::string> lines;
    for (const Trial& trial : session.trials()) {
      lines.push_back(fmt::format("{} {}", kNames[static_cast<size_t>(trial.phase)], micro_batch(trial.record.config)));
    }
    return lines;
  }
};

TEST_F(FinalsStudyTest, TheBestAndYourOwnAreMeasuredAgainAndGiveTheGain) {
  Session session(plan_of(with_finals()));
  const StudyResult result = run(session);
  EXPECT_EQ(result.status, StudyStatus::completed);
  EXPECT_EQ(result.reason, "three are enough");
  EXPECT_EQ(result.best->trial, 3u);
  ASSERT_TRUE(result.gain);
  EXPECT_NEAR(result.gain->ratio, 8, 1e-9);
  EXPECT_LT(*result.gain->low, 8);
  EXPECT_GT(*result.gain->high, 8);
  EXPECT_EQ(result.gain->baseline, 0u);
  const std::vector<Trial> trials = session.trials();
  ASSERT_GE(trials.size(), 6u);
  EXPECT_THAT(phases(session), ::testing::Contains("comparison 8"));
  EXPECT_THAT(phases(session), ::testing::Contains("comparison 1"));
  for (size_t id = 4; id < trials.size(); ++id) EXPECT_EQ(trials[id].record.kind, TrialKind::repeat);
  const auto record = read_study(session.plan.dir);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(to_json(record.value())["study"]["gain"], to_json(*result.gain));
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"), AllOf(HasSubstr("gain: 8.0 x"), HasSubstr("(trial 0)")));
}

TEST_F(FinalsStudyTest, RivalsWithinTheNoiseMeetInTheFinals) {
  Session session(plan_of(with_finals()));
  int measured = 0;
  session.runner.answer = [&](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    if (samples == 1) return completed(100);
    if (samples != 8) return completed(samples == 4 ? 300 : 200);
    return completed(measured++ == 0 ? 305 : 270);  // a lucky first measurement
  };
  const StudyResult result = session.run_new();
  EXPECT_THAT(phases(session), ::testing::Contains("finals 4"));
  EXPECT_EQ(result.best->trial, 2u) << "measuring again shows who is the best";
  EXPECT_NEAR(result.gain->ratio, 3, 1e-9);
}

// Three rivals, and two trials beside those that the comparison needs: the best two are measured again.
TEST_F(FinalsStudyTest, WithFewTrialsLeftTheBestTwoMeetInTheFinals) {
  StudyOptions given = with_finals();
  given.max_trials = 8;
  given.finals = 4;
  Session session(plan_of(given));
  int measured = 0;
  session.runner.answer = [&](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    if (samples == 1) return completed(100);
    if (samples != 8) return completed(samples == 4 ? 301 : 300);
    return completed(measured++ == 0 ? 305 : 270);
  };
  const StudyResult result = session.run_new();
  EXPECT_THAT(phases(session), ::testing::Contains("finals 4"));
  EXPECT_THAT(phases(session), ::testing::Contains("finals 8"));
  EXPECT_THAT(phases(session), ::testing::Not(::testing::Contains("finals 2")));
  EXPECT_EQ(result.best->trial, 2u);
}

// A lucky first measurement: measured anew, 8 is slower than your own, which has 290.
TrialEnd lucky(const TrialSpec& spec, int& measured) {
  const int64_t samples = micro_batch(spec.config);
  if (samples == 1) return completed(290);
  return completed(samples != 8 ? 100 : measured++ == 0 ? 305 : 280);
}

TEST_F(FinalsStudyTest, YourOwnIsHandedBackWhereMeasuringAgainFavoursIt) {
  Session session(plan_of(with_finals()));
  int measured = 0;
  session.runner.answer = [&](const TrialSpec& spec) { return lucky(spec, measured); };
  EXPECT_EQ(session.run_new().best->trial, 0u);
  EXPECT_THAT(phases(session), ::testing::Contains("comparison 8"));
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"),
              AllOf(HasSubstr("own configuration"), HasSubstr("is the best")));
}

TEST_F(FinalsStudyTest, WhatWasVerifiedIsHandedBackWhateverTheComparisonShows) {
  StudyOptions given = with_finals();
  given.verify_steps = 5;
  Session session(plan_of(given));
  int measured = 0;
  session.runner.answer = [&](const TrialSpec& spec) { return lucky(spec, measured); };
  EXPECT_EQ(session.run_new().best->trial, 3u);
}

TEST_F(FinalsStudyTest, FinalistsThatAllFailGiveWayToTheNextBest) {
  Session session(plan_of(with_finals()));
  std::map<int64_t, int> runs;
  session.runner.answer = [&](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    if (samples >= 4 && ++runs[samples] > 1) return failed(Outcome::out_of_memory, "CUDA out of memory");
    return completed(samples == 8 ? 305 : samples == 4 ? 300 : 100.0 * static_cast<double>(samples));
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.best->trial, 1u);
  EXPECT_NEAR(result.gain->ratio, 2, 1e-9);
  EXPECT_TRUE(result.gain->low) << "the comparison is that of the next best";
  const std::string summary = read_text(session.plan.dir / "summary.txt");
  EXPECT_THAT(summary, HasSubstr("trial 3 as trial 4, out of memory"));
  EXPECT_THAT(summary, HasSubstr("trial 2 as trial 5, out of memory"));
}

TEST_F(FinalsStudyTest, ABestThatFailsInTheComparisonGivesWayToTheNext) {
  Session session(plan_of(with_finals()));
  int runs = 0;
  session.runner.answer = [&](const TrialSpec& spec) {
    const bool fails = micro_batch(spec.config) == 8 && ++runs > 1;
    return fails ? failed(Outcome::out_of_memory, "CUDA out of memory") : answer(spec);
  };
  EXPECT_EQ(session.run_new().best->trial, 2u);
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"), HasSubstr("trial 3 as trial 4, out of memory"));
}

TEST_F(FinalsStudyTest, ANoisyComparisonEndsThoughTrialsAreLeft) {
  StudyOptions given = with_finals();
  given.max_trials = 60;
  Session session(plan_of(given));
  std::map<int64_t, int> runs;
  session.runner.answer = [&](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    return completed(throughput(samples) * (runs[samples]++ % 2 == 0 ? 1.2 : 0.8));
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  const std::vector<std::string> all = phases(session);
  EXPECT_EQ(std::count(all.begin(), all.end(), "comparison 8"), kMostComparisons);
  EXPECT_EQ(std::count(all.begin(), all.end(), "comparison 1"), kMostComparisons);
}

TEST_F(FinalsStudyTest, WithoutFinalsNothingIsMeasuredAgain) {
  StudyOptions given = with_finals();
  given.finals = 0;
  Session session(plan_of(given));
  const StudyResult result = run(session);
  EXPECT_EQ(session.trials().size(), 4u);
  ASSERT_TRUE(result.gain);
  EXPECT_NEAR(result.gain->ratio, 8, 1e-9);
  EXPECT_FALSE(result.gain->low) << "a measurement that was chosen for being high has no interval";
}

// Overlap is worth a quarter; the bucket does nothing.
class SimplerStudyTest : public FinalsStudyTest {
 protected:
  static Json try_keys(int64_t micro_batch, int64_t bucket, bool overlap) {
    return {{"try",
             {{config::kMicroBatchKey, micro_batch},
              {"zero_optimization", {{"stage", 2}, {"reduce_bucket_size", bucket}, {"overlap_comm", overlap}}}}}};
  }
  StudyOptions with_keys() {
    return with_finals({{"start",
                         {try_keys(4, 50000000, true), try_keys(8, 50000000, false), try_keys(8, 500000000, true),
                          try_keys(8, 5000000, true)}},
                        {"exit 4", {{{"finish", "four are enough"}}}}});
  }
  static TrialEnd answer(const TrialSpec& spec) {
    const Json* overlap = config::find(spec.config, "zero_optimization.overlap_comm");
    const bool overlaps = overlap != nullptr && *overlap == true;
    const Json* bucket = config::find(spec.config, "zero_optimization.reduce_bucket_size");
    const bool is_simple = bucket == nullptr || *bucket == 500000000;
    return completed(throughput(micro_batch(spec.config)) * (overlaps ? 1 : 0.8) * (is_simple ? 0.999 : 1));
  }
};

TEST_F(SimplerStudyTest, AKeyWithoutAClearEffectIsPutBack) {
  Session session(plan_of(with_keys()));
  session.runner.answer = answer;
  const StudyResult result = session.run_new();
  EXPECT_EQ(config::find(result.best->config, "zero_optimization.reduce_bucket_size"), nullptr);
  EXPECT_EQ(*config::find(result.best->config, "zero_optimization.overlap_comm"), true);
  EXPECT_EQ(micro_batch(result.best->config), 8);
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"),
              AllOf(HasSubstr("simplified: trial 4 "), HasSubstr("reduce_bucket_size, which had no clear effect")));
  EXPECT_TRUE(result.gain->low);
}

TEST_F(SimplerStudyTest, KeepAllChangesLeavesEveryKey) {
  StudyOptions given = with_keys();
  given.keep_all_changes = true;
  Session session(plan_of(given));
  session.runner.answer = answer;
  const StudyResult result = session.run_new();
  EXPECT_EQ(*config::find(result.best->config, "zero_optimization.reduce_bucket_size"), 5000000);
  EXPECT_EQ(read_text(session.plan.dir / "summary.txt").find("simplified"), std::string::npos);
}

TEST_F(FinalsStudyTest, TheSearcherLeavesTrialsForTheEnd) {
  for (const auto& [max_trials, kept] : {std::pair{15, 0}, {16, 1}, {24, 2}, {48, 4}, {200, 4}}) {
    fs::remove_all(dir() / "run");
    Json script = {{"start", Json::array()}, {"exit *", Json::array()}};
    for (int i = 0; i < max_trials; ++i) script["start"].push_back(try_micro_batch(2 + i));
    StudyOptions given = with_finals(script);
    given.max_trials = max_trials;
    Session session(plan_of(given));
    run(session);
    int of_search = 0;
    for (const Trial& trial : session.trials()) of_search += trial.phase == Phase::searcher ? 1 : 0;
    EXPECT_EQ(of_search, max_trials - kept - 1) << max_trials;
    EXPECT_LE(static_cast<int>(session.trials().size()), max_trials);
  }
}

TEST_F(FinalsStudyTest, AnInterruptionOfTheFinalsChangesNothing) {
  Session whole(plan_of(with_finals()));
  run(whole);
  const std::vector<std::string> expected = phases(whole);
  for (uint64_t held = 0; held < expected.size(); ++held) {
    fs::remove_all(dir() / "run");
    Session first(plan_of(with_finals()));
    first.runner.answer = answer;
    first.runner.held = {held};
    first.runner.when_all_held = [&] { first.request_stop(); };
    EXPECT_EQ(first.run_new().status, StudyStatus::interrupted);
    Session second(resumed_plan(dir() / "run"));
    second.runner.answer = answer;
    const StudyResult result = second.resume();
    EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
    EXPECT_EQ(phases(second), expected) << "held " << held;
    EXPECT_NEAR(result.gain.value().ratio, 8, 1e-9);
  }
}

TEST_F(FinalsStudyTest, TheBestThatAnEarlierPhaseNamedIsKeptOverTwoInterruptions) {
  StudyOptions given = with_finals({{"start", {try_micro_batch(2), try_micro_batch(4), try_micro_batch(8)}},
                                    {"exit 3", {{{"finish", "8 was lucky"}, {"best", 2}}}}});
  given.finals = 0;
  given.verify_steps = 100;
  const auto interrupt_verification = [](Session& session) {
    session.runner.answer = answer;
    session.runner.held = {4};
    session.runner.when_all_held = [&session] {
      EXPECT_TRUE(session.journal->meta("gain").value_or(Json()).is_null()) << "that of its end is none of now";
      session.request_stop();
    };
  };
  Session first(plan_of(given));
  interrupt_verification(first);
  const StudyResult once = first.run_new();
  EXPECT_EQ(once.best->trial, 2u);
  EXPECT_TRUE(once.gain);
  EXPECT_THAT(read_text(dir() / "run" / "summary.txt"), HasSubstr("itself was not"));
  Session second(resumed_plan(dir() / "run"));
  interrupt_verification(second);
  EXPECT_EQ(second.resume().best->trial, 2u);
  EXPECT_EQ(second.runner.started_ids(), std::vector<uint64_t>{4});
}

TEST_F(FinalsStudyTest, ARaisedLimitGoesBackToTheSearcher) {
  Session first(plan_of(with_finals()));
  run(first);
  Plan plan = resumed_plan(dir() / "run");
  plan.max_trials = 40;
  Session second(plan);
  second.runner.answer = answer;
  const StudyResult result = second.resume();
  EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
  EXPECT_EQ(result.best->trial, 3u);
  EXPECT_NEAR(result.gain.value().ratio, 8, 1e-9);
  EXPECT_TRUE(second.observer.logged("are taken back"));
  EXPECT_TRUE(second.observer.logged("trials 4 "));
  fs::remove_all(dir() / "run");
  StudyOptions given = with_finals();
  given.max_trials = 40;
  Session whole(plan_of(given));
  run(whole);
  EXPECT_EQ(phases(second), phases(whole)) << "as if it had had the limit from its start";
}

TEST_F(FinalsStudyTest, WithoutABaselineThereIsNoGainThoughYourOwnWasMeasured) {
  StudyOptions given =
      with_finals({{"start", {try_micro_batch(1), try_micro_batch(8)}}, {"exit 1", {{{"finish", "two are enough"}}}}});
  given.baseline = false;
  Session session(plan_of(given));
  const StudyResult result = run(session);
  EXPECT_EQ(result.best->trial, 1u);
  EXPECT_FALSE(result.gain);
  EXPECT_THAT(phases(session), ::testing::ElementsAre("searcher 1", "searcher 8"));
  EXPECT_EQ(read_text(session.plan.dir / "summary.txt").find("gain:"), std::string::npos);
}

TEST_F(FinalsStudyTest, YourOwnThatFailsIsReportedAndLeavesNoGain) {
  Session session(plan_of(with_finals()));
  session.runner.answer = [](const TrialSpec& spec) {
    return micro_batch(spec.config) == 1 ? failed(Outcome::out_of_memory, "CUDA out of memory") : answer(spec);
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.best->trial, 3u);
  EXPECT_FALSE(result.gain);
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"), HasSubstr("configuration: trial 0, out of memory"));
}

TEST_F(FinalsStudyTest, TheBestIsVerifiedByFurtherSteps) {
  StudyOptions given = with_finals();
  given.verify_steps = 100;
  Session session(plan_of(given));
  EXPECT_EQ(run(session).best->trial, 3u);
  int further = 0;
  for (const TrialSpec& spec : session.runner.started) further += spec.further_steps;
  EXPECT_EQ(further, 100);
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"), HasSubstr("trial 3 trained 100"));
}

TEST_F(FinalsStudyTest, OneThatDoesNotLastGivesWayToTheNext) {
  StudyOptions given = with_finals();
  given.verify_steps = 100;
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    if (samples == 8 && spec.further_steps > 0) return failed(Outcome::out_of_memory, "CUDA out of memory");
    return completed(samples == 8 ? 302 : samples == 4 ? 300 : 100);
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.best->trial, 2u);
  const std::string summary = read_text(session.plan.dir / "summary.txt");
  EXPECT_THAT(summary, AllOf(HasSubstr("not verified: trial 3 "), HasSubstr("(out of memory")));
  EXPECT_THAT(summary, HasSubstr("trial 2 trained 100"));
}

TEST_F(FinalsStudyTest, TheNextToBeVerifiedNeedsClearlyLessMemory) {
  StudyOptions given = with_finals();
  given.verify_steps = 100;
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    if (samples >= 4 && spec.further_steps > 0) return failed(Outcome::out_of_memory, "CUDA out of memory");
    TrialEnd end = completed(samples == 8 ? 302 : samples == 4 ? 300 : 100);
    end.peak_bytes = samples == 8 ? 1000 : samples == 4 ? 990 : 700;
    return end;
  };
  const StudyResult result = session.run_new();
  EXPECT_LT(micro_batch(result.best->config), 4);
  const std::string summary = read_text(session.plan.dir / "summary.txt");
  EXPECT_THAT(summary, AllOf(HasSubstr("not verified: trial 3 "), HasSubstr("(out of memory")));
  EXPECT_THAT(summary, Not(HasSubstr("not verified: trial 2"))) << "its peak is nearly the same";
}

TEST_F(FinalsStudyTest, WhereNothingLastsTheSummarySaysThatTheBestWasNotVerified) {
  StudyOptions given = with_finals();
  given.verify_steps = 100;
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    return spec.further_steps > 0 ? failed(Outcome::out_of_memory, "CUDA out of memory") : answer(spec);
  };
  session.run_new();
  EXPECT_THAT(read_text(session.plan.dir / "summary.txt"), HasSubstr("itself was not"));
}

TEST_F(FinalsStudyTest, ASingleOneThatDoesNotLastLeavesNoFilesOfABest) {
  StudyOptions given = with_finals();
  given.verify_steps = 100;
  Session session(plan_of(given));
  session.runner.answer = [&](const TrialSpec& spec) {
    const int64_t samples = micro_batch(spec.config);
    if (samples != 8) return failed(Outcome::failed, fmt::format("{} are too few", samples));
    EXPECT_EQ(fs::exists(session.plan.dir / "best_cmd.txt"), spec.further_steps > 0);
    return spec.further_steps > 0 ? failed(Outcome::out_of_memory, "CUDA out of memory") : answer(spec);
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, HasSubstr("handed back"));
  for (const char* name : {"best_ds_config.json", "best_ds_metrics.json", "best_cmd.txt"}) {
    EXPECT_FALSE(fs::exists(session.plan.dir / name)) << name;
  }
}

TEST_F(FinalsStudyTest, WhereAllLieAboveTheMarginTheReasonSaysThatTheyWereMeasured) {
  Session session(plan_of(with_margin()));
  session.runner.answer = [](const TrialSpec& spec) {
    TrialEnd end = answer(spec);
    end.peak_bytes = 950;
    return end;
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, HasSubstr("handed back"));
  EXPECT_THAT(result.reason, HasSubstr("--memory-margin is 0.1"));
}

TEST_F(FinalsStudyTest, AMarginKeepsAFullDeviceFromBeingTheBest) {
  Session session(plan_of(with_margin()));
  session.runner.answer = [](const TrialSpec& spec) {
    TrialEnd end = answer(spec);
    end.peak_bytes = micro_batch(spec.config) == 8 ? 950 : 800;
    return end;
  };
  EXPECT_EQ(session.run_new().best->trial, 2u);
  const auto events = Journal::open(session.plan.dir, Journal::Mode::read_only)->events();
  for (const JournalEvent& entry : events) {
    if (entry.phase != Phase::searcher || entry.event.kind != StrategyEvent::Kind::start) continue;
    EXPECT_EQ(entry.event.study.at("device_memory_bytes"), 900) << "searchers know of the rest alone";
  }
  session.journal->begin();
  session.journal->put_meta("best", nullptr);
  session.journal->commit();
  EXPECT_EQ(write_best(session.plan.dir, {}).value().best.trial, 2u) << "chosen anew, by the same rules";
}

TEST(FormatGainTest, NamesTheNumbersItWasMadeOf) {
  const Gain gain{14.2, 0.9, 224, 3, {6344, 1}, {447.1, 1}, 1};
  EXPECT_THAT(
      format_gain_sides(gain, "throughput"),
      AllOf(HasSubstr("best 6344 samples/s"), HasSubstr("1 earlier measurement"), HasSubstr("own 447.1 samples/s")));
  EXPECT_THAT(format_gain({39, {}, {}, 3, {390, 1}, {10, 1}}, 9),
              AllOf(HasSubstr("better than your own"), HasSubstr("(trial 3)"), HasSubstr("no factor"),
                    ::testing::Not(HasSubstr("39"))))
      << "one measurement a side may be off by any factor";
}

TEST(FormatGainTest, HasAsManyDecimalsAsTheIntervalIsWorth) {
  EXPECT_THAT(format_gain({3.1234, 2.9, 3.34, 4}, 9),
              AllOf(StartsWith("3.1 x "), HasSubstr("(trial 4)"), HasSubstr("2.9 to 3.3")));
  EXPECT_THAT(format_gain({1.0432, 1.021, 1.066, 0}, 9),
              AllOf(StartsWith("1.04 x "), HasSubstr("(trial 0)"), HasSubstr("1.02 to 1.07")));
  EXPECT_THAT(format_gain({1, 1, 1, 4}, 4), StartsWith("none, "));
  EXPECT_THAT(format_gain({0.5, {}, {}, 4}, 9), StartsWith("no better than "));
}

TEST(FormatGainTest, AnIntervalThatIsTooWideIsPutInWords) {
  EXPECT_THAT(format_gain({1.8, 0.11, 30, 3}, 9),
              AllOf(StartsWith("faster than "), HasSubstr("(trial 3)"), HasSubstr("not clearly"),
                    ::testing::Not(HasSubstr("0.11")), HasSubstr("--finals")));
  EXPECT_THAT(format_gain({14.2, 3.1, 65, 3}, 9), AllOf(StartsWith("more than 3.1 x "), HasSubstr("(trial 3)")));
}

}  // namespace
}  // namespace dsat::host
