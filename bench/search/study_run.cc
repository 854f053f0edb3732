// Runs a plugin on the SDK's test bench. A virtual clock decides which open trial ends next. Samplers that are no
// plugins work by ask and tell under the same clock.
#include "search/study_run.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace dsat::bench {
namespace {

constexpr double kReorderWindow_s = 5;  // the host's: the time for which an ended trial waits for older ones

// The open trials in the order of their ids. The first `slots` run, the others wait. A trial's end is reported when no
// older trial runs, or after the window.
class Clock {
 public:
  Clock(double now_s, int slots) : now_s_(now_s), slots_(static_cast<size_t>(std::max(1, slots))) {}

  double now_s() const { return now_s_; }

  void start(double duration_s) { open_.push_back({now_s_, now_s_ + duration_s}); }

  // The trial whose end is reported next. The clock moves to that time.
  size_t next() {
    size_t chosen = 0;
    double soonest = 0, older_end = 0;
    for (size_t i = 0; i < std::min(slots_, open_.size()); ++i) {
      const double end = open_[i].end_s;
      older_end = std::max(older_end, end);
      const double reported = std::min(end + kReorderWindow_s, older_end);
      if (i == 0 || reported < soonest) {
        chosen = i;
        soonest = reported;
      }
    }
    now_s_ = std::max(now_s_, soonest);
    return chosen;
  }

  struct TrialTimes {
    double start_s, end_s;
  };
  TrialTimes take(size_t index) {
    const TrialTimes times = open_[index];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
    if (open_.size() >= slots_) {
      TrialTimes& begins = open_[slots_ - 1];
      begins = {now_s_, now_s_ + begins.end_s - begins.start_s};
    }
    return times;
  }

 private:
  double now_s_;
  size_t slots_;
  std::vector<TrialTimes> open_;
};

Study study_of(const StudySetting& setting) {
  const Surface& surface = *setting.surface;
  Study study;
  study.seed = setting.seed;
  study.metric = "throughput";
  study.maximise = true;
  for (const config::StageSpace& stage : setting.space->stages) study.zero_stages.push_back(stage.stage);
  study.base_config = surface.base_config();
  study.space = config::to_json(*setting.space);
  study.limits.max_trials = setting.max_trials;
  study.limits.max_concurrent_trials = setting.concurrency;
  study.limits.profile_trials = setting.profile_trials;
  study.limits.slots = surface.job.gpus * setting.concurrency;
  study.limits.slots_per_trial = surface.job.gpus;
  study.limits.data_parallel_size = surface.job.gpus;
  study.observations = Json::array();
  return study;
}

// Answers a plugin's trials and drives the clock. The bench and the clock have the same open trials in the same order.
class SimulatedStudy {
 public:
  SimulatedStudy(const StudySetting& setting, double start_s)
      : setting_(setting), clock_(start_s, setting.concurrency) {}

  // Counts earlier measurements, because a repeated configuration has other noise.
  void know(const std::vector<TrialLog>& trials) {
    for (const TrialLog& trial : trials) ++seen_[identity(trial.config)];
  }

  void run(testing::Bench& bench) {
    bench.end_in_order([this, &bench](size_t) { return pick(bench); });
    bench.start();
    while (bench.step()) record(bench);
    record(bench);
  }

  testing::Answer answer(const testing::Trial& trial) { return measured_.at(trial.id).answer; }
  std::vector<TrialLog> take_trials() { return std::move(trials_); }
  double now_s() const { return clock_.now_s(); }

 private:
  size_t pick(const testing::Bench& bench) {
    for (; started_ < bench.asked().size(); ++started_) {
      const testing::Trial& trial = bench.asked()[started_];
      if (trial.duplicate) continue;  // the bench answers a duplicate after its original
      const uint64_t repetition = seen_[identity(trial.config)]++;
      SurfaceTrial simulated = measure(*setting_.surface, trial.config, setting_.seed, repetition,
                                       setting_.concurrency == 1, clock_.now_s());
      clock_.start(simulated.duration_s);
      measured_.emplace(trial.id, std::move(simulated));
    }
    const size_t index = clock_.next();
    times_ = clock_.take(index);
    return index;
  }

  void record(const testing::Bench& bench) {
    for (; recorded_ < bench.ended().size(); ++recorded_) {
      const testing::Ended& ended = bench.ended()[recorded_];
      if (ended.trial.duplicate || ended.answer.outcome == Outcome::stopped) continue;
      TrialLog log;
      log.id = ended.trial.id;
      log.config = ended.trial.config;
      log.outcome = ended.answer.outcome;
      log.repeat = ended.trial.repeat;
      log.start_s = times_.start_s;
      log.end_s = times_.end_s;
      log.note = ended.trial.note;
      log.config.erase("autotuning");
      const auto metric = ended.answer.metrics.find("throughput");
      if (metric != ended.answer.metrics.end()) log.throughput = metric->second;
      trials_.push_back(std::move(log));
    }
  }

  const StudySetting& setting_;
  Clock clock_;
  Clock::TrialTimes times_{0, 0};
  size_t started_ = 0, recorded_ = 0;
  std::map<std::string, uint64_t> seen_;
  std::map<TrialId, SurfaceTrial> measured_;
  std::vector<TrialLog> trials_;
};

StudyRun after(const ProfileRun& profile) {
  StudyRun run;
  run.trials = profile.trials;
  run.profile_s = run.wall_s = profile.wall_s;
  return run;
}

void append(StudyRun& run, std::vector<TrialLog> trials) {
  for (TrialLog& trial : trials) {
    run.wall_s = std::max(run.wall_s, trial.end_s);
    run.trials.push_back(std::move(trial));
  }
}

}  // namespace

ProfileRun run_profile(const dsat_factory& profiler, const StudySetting& setting) {
  StudySetting alone = setting;
  alone.concurrency = 1;
  SimulatedStudy simulation(alone, 0);
  testing::Bench bench(profiler, profiler.descriptor(0)->id, study_of(alone),
                       [&](const testing::Trial& trial) { return simulation.answer(trial); });
  simulation.run(bench);
  ProfileRun run;
  run.trials = simulation.take_trials();
  run.wall_s = simulation.now_s();
  if (!bench.error().empty() || bench.profile().is_null()) run.error = bench.error() + bench.finish_reason();
  run.profile = bench.profile();
  run.observations = Json::array();
  for (const testing::Ended& ended : bench.ended()) {
    if (ended.trial.config.contains("autotuning")) continue;
    Json metrics, peak;
    if (!ended.answer.metrics.empty()) metrics = ended.answer.metrics;
    if (ended.answer.peak_bytes) peak = *ended.answer.peak_bytes;
    run.observations.push_back({{"trial", ended.trial.id},
                                {"config", ended.trial.config},
                                {"outcome", outcome_name(ended.answer.outcome)},
                                {"metrics", metrics},
                                {"peak_bytes", peak}});
  }
  return run;
}

StudyRun run_searcher(const dsat_factory& searcher, const Json& options, const StudySetting& setting,
                      const ProfileRun& profile) {
  StudyRun run = after(profile);
  Study study = study_of(setting);
  study.profile = profile.profile;
  study.observations = profile.observations;
  if (setting.surface->reports_device_memory) {
    study.device_memory_bytes = static_cast<uint64_t>(setting.surface->job.device_memory);
  }
  const auto began = std::chrono::steady_clock::now();
  SimulatedStudy simulation(setting, profile.wall_s);
  simulation.know(profile.trials);
  testing::Bench bench(
      searcher, searcher.descriptor(0)->id, study,
      [&](const testing::Trial& trial) { return simulation.answer(trial); }, options);
  simulation.run(bench);
  run.decision_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  run.error = bench.error();
  run.finish_reason = bench.finish_reason();
  append(run, simulation.take_trials());
  run.best = best_measured(run.trials, run.trials.size());
  for (const TrialLog& trial : run.trials) {
    if (trial.id == bench.best() && trial.outcome == Outcome::completed && trial.throughput > 0)
      run.best = trial.config;
  }
  return run;
}

StudyRun run_ask_tell(AskTell& sampler, const StudySetting& setting, const ProfileRun& profile) {
  StudyRun run = after(profile);
  Clock clock(profile.wall_s, setting.concurrency);
  struct AskedTrial {
    TrialLog log;
    Json overrides;
    testing::Answer answer;
  };
  std::vector<AskedTrial> open;
  std::map<std::string, uint64_t> seen;
  for (const TrialLog& trial : profile.trials) ++seen[identity(trial.config)];
  size_t asked_for = run.trials.size();
  for (;;) {
    while (asked_for < static_cast<size_t>(setting.max_trials) &&
           open.size() < static_cast<size_t>(setting.concurrency)) {
      AskedTrial next;
      next.overrides = sampler.ask();
      next.log.id = asked_for++;
      next.log.config = setting.surface->base_config();
      testing::merge(next.log.config, next.overrides);
      const uint64_t repetition = seen[identity(next.log.config)]++;
      SurfaceTrial simulated =
          measure(*setting.surface, next.log.config, setting.seed, repetition, setting.concurrency == 1, clock.now_s());
      clock.start(simulated.duration_s);
      next.answer = std::move(simulated.answer);
      open.push_back(std::move(next));
    }
    if (open.empty()) break;
    const size_t index = clock.next();
    AskedTrial ended = std::move(open[index]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    const Clock::TrialTimes times = clock.take(index);
    sampler.tell(ended.overrides, ended.answer);
    ended.log.outcome = ended.answer.outcome;
    ended.log.start_s = times.start_s;
    ended.log.end_s = times.end_s;
    if (ended.answer.outcome == Outcome::completed) ended.log.throughput = ended.answer.metrics.at("throughput");
    append(run, {std::move(ended.log)});
  }
  run.best = best_measured(run.trials, run.trials.size());
  return run;
}

Json best_measured(const std::vector<TrialLog>& trials, size_t count) {
  struct Mean {
    double sum = 0;
    int count = 0;
    const TrialLog* first = nullptr;
    double value() const { return sum / count; }
  };
  std::map<std::string, Mean> means;
  const Mean* best = nullptr;
  for (size_t i = 0; i < std::min(count, trials.size()); ++i) {
    if (trials[i].outcome != Outcome::completed || trials[i].throughput <= 0) continue;
    Mean& mean = means[identity(trials[i].config)];
    if (mean.first == nullptr) mean.first = &trials[i];
    mean.sum += trials[i].throughput;
    ++mean.count;
  }
  for (const auto& [key, mean] : means) {
    const bool wins = best == nullptr || mean.value() > best->value() ||
                      (mean.value() == best->value() && mean.first->id < best->first->id);
    if (wins) best = &mean;
  }
  return best == nullptr ? Json() : best->first->config;
}

double full_slots_s(const std::vector<TrialLog>& trials, size_t first, int concurrency) {
  std::vector<double> free_s(static_cast<size_t>(std::max(1, concurrency)), 0.0);
  for (size_t i = first; i < trials.size(); ++i) {
    double& slot = *std::min_element(free_s.begin(), free_s.end());
    slot += trials[i].end_s - trials[i].start_s;
  }
  return *std::max_element(free_s.begin(), free_s.end());
}

}  // namespace dsat::bench
