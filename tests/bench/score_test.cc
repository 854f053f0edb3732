// How bench/search makes scores of studies, and what its virtual clock does with slots.
// Made-up trials, and short studies of the random searcher.
#include "search/score.h"

#include <gtest/gtest.h>

#include <set>

#include "dsat/searcher.h"
#include "profiler/profiler.h"
#include "random/random.h"
#include "search/surfaces/optimum.h"
#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

TrialLog trial(TrialId id, int micro_batch, double throughput, double start_s = 0, double end_s = 1) {
  TrialLog log;
  log.id = id;
  log.config = {{"train_micro_batch_size_per_gpu", micro_batch}};
  log.outcome = throughput > 0 ? Outcome::completed : Outcome::out_of_memory;
  log.throughput = throughput;
  log.start_s = start_s;
  log.end_s = end_s;
  return log;
}

TEST(BestMeasured, IsTheBestMeanOfAConfiguration) {
  const std::vector<TrialLog> trials{trial(0, 1, 10), trial(1, 2, 14), trial(2, 2, 8), trial(3, 4, 0)};
  EXPECT_EQ(best_measured(trials, 2), trials[1].config);
  EXPECT_EQ(best_measured(trials, 4), trials[1].config);  // 11 on average
  EXPECT_EQ(best_measured({trial(0, 1, 12), trials[1], trials[2]}, 3), trial(0, 1, 12).config);
  EXPECT_TRUE(best_measured({trials[3]}, 1).is_null());
}

TEST(FullSlots, AreFilledOneAfterAnother) {
  const std::vector<TrialLog> trials{trial(0, 1, 1, 0, 9), trial(1, 1, 1, 0, 4), trial(2, 1, 1, 0, 3),
                                     trial(3, 1, 1, 0, 2)};
  EXPECT_DOUBLE_EQ(full_slots_s(trials, 0, 1), 18);
  EXPECT_DOUBLE_EQ(full_slots_s(trials, 1, 2), 5);
}

TEST(Summary, IsTheMedianOverSeeds) {
  std::vector<SeedScore> seeds(3);
  for (int i = 0; i < 3; ++i) {
    SeedScore& seed = seeds[static_cast<size_t>(i)];
    seed.handed = {{20, 0.5 * i + 0.4}};
    seed.tried = 0.1 * i;
    seed.so_far = {20, i == 2 ? 20.0 : 4.0, 0.9};
    seed.trials = 4;
    seed.out_of_memory = i;
    seed.wall_s = 30;
    seed.profile_s = 10;
    seed.full_s = 10;
    seed.busy_s = 10;
  }
  const Summary summary = summarise(seeds, 2);
  EXPECT_DOUBLE_EQ(summary.regret.at(20), 0.9);
  EXPECT_DOUBLE_EQ(summary.tried, 0.1);
  EXPECT_NEAR(summary.within_1_at_20, 200.0 / 3, 1e-9);
  EXPECT_NEAR(summary.out_of_memory, 25, 1e-9);
  EXPECT_EQ(summary.trials_to.at(5), 2);
  EXPECT_EQ(summary.trials_to.at(1), 3);
  EXPECT_DOUBLE_EQ(summary.wall_ratio, 2);
  EXPECT_DOUBLE_EQ(summary.slot_use, 25);
  EXPECT_EQ(score_from_json(to_json(seeds[1])).so_far, seeds[1].so_far);
  EXPECT_EQ(score_from_json(to_json(seeds[1])).tried, seeds[1].tried);
}

struct Studied {
  Surface surface = six_surfaces(1)[1];
  config::Space space = surface.space();
  StudySetting setting{&surface, &space, 3, 16, 1};
  ProfileRun profile = run_profile(testing::factory<ModelProfiler>(), setting);

  StudyRun run(int concurrency) {
    setting.concurrency = concurrency;
    return run_searcher(testing::factory<RandomSearch>(), Json::object(), setting, profile);
  }
};

TEST(StudyRun, CountsTheProfileAndGoesOnAfterIt) {
  Studied studied;
  const StudyRun run = studied.run(1);
  EXPECT_EQ(run.error, "");
  ASSERT_EQ(run.trials.size(), 16u);
  for (size_t i = 0; i < run.trials.size(); ++i) EXPECT_EQ(run.trials[i].id, i);
  EXPECT_FALSE(run.best.is_null());
  for (size_t i = 1; i < run.trials.size(); ++i) EXPECT_GE(run.trials[i].start_s, run.trials[i - 1].end_s);
}

TEST(StudyRun, SlotsWorkSideBySide) {
  Studied studied;
  const StudyRun one = studied.run(1), four = studied.run(4);
  EXPECT_LT(four.wall_s - four.profile_s, 0.5 * (one.wall_s - one.profile_s));
  for (const TrialLog& trial : four.trials) {
    int at_work = 0;
    for (const TrialLog& other : four.trials) {
      if (other.start_s <= trial.start_s && trial.start_s < other.end_s) ++at_work;
    }
    EXPECT_LE(at_work, 4);
  }
}

TEST(StudyRun, TheSameSeedIsTheSameStudy) {
  Studied studied;
  const StudyRun once = studied.run(4), again = studied.run(4);
  ASSERT_EQ(once.trials.size(), again.trials.size());
  for (size_t i = 0; i < once.trials.size(); ++i) EXPECT_EQ(once.trials[i].config, again.trials[i].config);
  EXPECT_EQ(once.best, again.best);
}

// What was tried is at least as good as what the measurements make the best, after any number of trials.
TEST(AddStudy, WhatWasTriedIsTheBestOfTheTruth) {
  Studied studied;
  const StudyRun run = studied.run(1);
  SeedScore score;
  const double fast = 1e9;
  add_study(score, studied.surface, fast, run, static_cast<int>(run.trials.size()), 1);
  double least = 100;
  for (const TrialLog& trial : run.trials) {
    if (trial.outcome != Outcome::completed) continue;
    least = std::min(least, 100 * (1 - studied.surface.throughput(point_of(trial.config)) / fast));
  }
  EXPECT_NEAR(score.tried, least, 1e-9);
  for (const double so_far : score.so_far) EXPECT_GE(so_far, score.tried);
}

// Asks for the user's own configuration, which the profile has measured, and again twice.
class Repeater : public Searcher<Repeater> {
 public:
  static Descriptor descriptor() { return {"test.repeater", "repeater", "1", "repeats one configuration", {}}; }
  Repeater(Host host, const Options&) : Searcher(host) {}
  void start(const Study& study) {
    for (int i = 0; i < 3; ++i) {
      TrialRequest request;
      const Json& config = study.observations.at(0).at("config");
      request.overrides = {{"train_micro_batch_size_per_gpu", config.at("train_micro_batch_size_per_gpu")},
                           {"zero_optimization", config.at("zero_optimization")}};
      request.repeat = true;
      create_trial(request);
    }
  }
  void on_result(const Result&) {}
  void on_trial_exited(const Exit&) {
    if (++ended_ == 3) finish("done");
  }

 private:
  int ended_ = 0;
};

TEST(StudyRun, ARepeatedConfigurationHasOtherNoise) {
  Studied studied;
  const StudyRun run = run_searcher(testing::factory<Repeater>(), Json::object(), studied.setting, studied.profile);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.finish_reason, "done");
  std::set<double> measured;
  const Json config = studied.profile.observations.at(0).at("config");
  for (const TrialLog& trial : run.trials) {
    if (trial.config == config) measured.insert(trial.throughput);
  }
  EXPECT_EQ(measured.size(), 4u);  // the profile's and three repeats
}

// A profiler whose trials fail.
TEST(StudyRun, AProfileThatFailsIsReportedAndNotThrown) {
  Surface surface = six_surfaces(1).front();
  surface.script_limit = 1;
  const config::Space space = surface.space();
  const StudySetting setting{&surface, &space, 1, 16, 1};
  const ProfileRun profile = run_profile(testing::factory<ModelProfiler>(), setting);
  EXPECT_TRUE(profile.error.empty() || profile.error.find("more than the data set's") != std::string::npos);
}

}  // namespace
}  // namespace dsat::bench
