// Do the 95 % intervals of the gain cover the truth? Whole studies are simulated, the choice of the best by noisy
// measurements included: it is what makes the best look better than it is.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "finals/comparison.h"
#include "finals/finalists.h"
#include "finals/finals.h"
#include "finals/gain.h"

namespace dsat::host {
namespace {

constexpr int kStudies = 2000;
constexpr int kConfigurations = 24;
const std::string kMetric = "throughput";

std::string name_of(int configuration) { return "configuration " + std::to_string(configuration); }

// A study whose trials are numbers: configuration 0 is the user's own.
class SimulatedStudy : public RequestAnswers {
 public:
  SimulatedStudy(double noise, int max_trials, uint64_t seed) : noise_(noise), left_(max_trials), random_(seed) {
    truths_.push_back(100);
    for (int i = 1; i < kConfigurations; ++i) truths_.push_back(280 * std::exp(0.02 * normal_(random_)));
    for (int i = 0; i < kConfigurations; ++i) run(i, Phase::searcher);
  }

  std::optional<uint64_t> create_trial(const Op& request) override {
    if (left_ < 1) return std::nullopt;
    run(request.overrides.at("configuration").get<int>(), phase_);
    to_deliver_.push_back(trials_.size() - 1);
    return trials_.size() - 1;
  }
  uint64_t next_id() const override { return trials_.size(); }

  // Runs a strategy to its end; returns the trial that it names.
  uint64_t play(Strategy& strategy, Phase phase, const Json& brief) {
    phase_ = phase;
    StrategyEvent start;
    start.study = brief;
    std::optional<uint64_t> named = named_by(strategy.handle(start, *this));
    while (!to_deliver_.empty()) {
      const uint64_t id = to_deliver_.front();
      to_deliver_.pop_front();
      StrategyEvent event;
      event.trial = id;
      event.kind = StrategyEvent::Kind::result;
      event.metrics = trials_[id].record.metrics;
      strategy.handle(event, *this);
      event.kind = StrategyEvent::Kind::exited;
      if (const auto best = named_by(strategy.handle(event, *this))) named = best;
    }
    return named.value();
  }

  // Finals and comparison after the search; does the interval cover the true gain?
  bool covers() {
    const auto anyone = [](const Trial&) { return true; };
    Json finalists = Json::array();
    const auto chosen = choose_finalists(trials_, kMetric, true, best_measured(), anyone, left_ - 2);
    for (const Contender& one : chosen) {
      finalists.push_back({{"trial", one.trial}, {"overrides", overrides_of(one.trial)}, {"values", one.values}});
    }
    Finals finals;
    const uint64_t best = play(finals, Phase::finals,
                               {{"metric", kMetric},
                                {"maximise", true},
                                {"finalists", finalists},
                                {"others", to_json(Repeats())},
                                {"budget", left_ - 2},
                                {"reason", "done"}});
    const std::string identity = trials_[best].identity;
    const Repeats others = repeats_but(trials_, kMetric, true, identity, name_of(0));
    const std::vector<double> before = values_of(trials_, identity, kMetric, true);
    BestAgainstOwn comparison;
    play(comparison, Phase::comparison,
         {{"metric", kMetric},
          {"maximise", true},
          {"best", {{"trial", best}, {"overrides", overrides_of(best)}, {"values", before}}},
          {"own",
           {{"trial", 0}, {"overrides", overrides_of(0)}, {"values", values_of(trials_, name_of(0), kMetric, true)}}},
          {"own_may_win", true},
          {"others", to_json(others)},
          {"budget", left_},
          {"reason", "done"}});
    const Gain gain = gain_over_own(trials_, kMetric, true, name_of(0), best).value();
    const double truth = truths_[configurations_[best]] / truths_[0];
    width_ = (*gain.high - *gain.low) / gain.ratio;
    return *gain.low <= truth && truth <= *gain.high;
  }
  double width() const { return width_; }

 private:
  void run(int configuration, Phase phase) {
    --left_;
    Trial trial;
    trial.record.id = trials_.size();
    trial.phase = phase;
    trial.identity = name_of(configuration);
    trial.record.outcome = Outcome::completed;
    trial.record.metrics = {{kMetric, truths_[configuration] * std::exp(noise_ * normal_(random_))}};
    trials_.push_back(trial);
    configurations_.push_back(configuration);
  }
  Json overrides_of(uint64_t trial) const { return {{"configuration", configurations_[trial]}}; }
  uint64_t best_measured() const {
    uint64_t best = 0;
    for (const Trial& trial : trials_) {
      if (trial.record.metrics.at(kMetric) > trials_[best].record.metrics.at(kMetric)) best = trial.id();
    }
    return best;
  }
  static std::optional<uint64_t> named_by(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (op.kind == Op::Kind::finish) return op.trial;
    }
    return std::nullopt;
  }

  double noise_;
  int left_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1};
  std::vector<double> truths_;
  std::vector<Trial> trials_;
  std::vector<int> configurations_;
  std::deque<uint64_t> to_deliver_;
  Phase phase_ = Phase::searcher;
  double width_ = 0;
};

double coverage(double noise, int max_trials, double& mean_width) {
  int covered = 0;
  mean_width = 0;
  for (int i = 0; i < kStudies; ++i) {
    SimulatedStudy study(noise, max_trials, 1000 + static_cast<uint64_t>(i));
    covered += study.covers() ? 1 : 0;
    mean_width += study.width() / kStudies;
  }
  return static_cast<double>(covered) / kStudies;
}

// 24 trials of a search, and after them a reserve alone, a few more, or plenty.
TEST(CoverageTest, IntervalsOfTheGainCoverTheTruth) {
  for (const double noise : {0.005, 0.015, 0.03, 0.1, 0.3, 1.0}) {
    for (const int after : {1, 2, 4, 26}) {
      double width = 0;
      const double share = coverage(noise, kConfigurations + after, width);
      EXPECT_GE(share, 0.93) << "noise " << noise << ", trials after the search: " << after;
      RecordProperty("coverage", std::to_string(share));
      printf("noise %.3f after %2d: coverage %.3f, width %.3f\n", noise, after, share, width);
    }
  }
}

}  // namespace
}  // namespace dsat::host
