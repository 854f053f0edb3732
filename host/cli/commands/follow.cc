// Reads the journal twice a second and reports new trials to the same observer as a running study does. A journal gives
// no notice when it grows.
#include "commands/follow.h"

#include <map>
#include <set>
#include <string>

#include "dsat/error.h"
#include "dsat/host/facts.h"
#include "terminal/progress.h"

namespace dsat::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenReads{500};

host::StudyFacts read(const std::filesystem::path& dir) {
  auto facts = host::read_study_facts(dir);
  if (!facts.ok()) throw Error(facts.status().message());
  return std::move(facts.value());
}

class Follower {
 public:
  Follower(const host::StudyFacts& first, Console& console) : progress_(console, settings_for(first)) {
    progress_.count_earlier(first.record);
    for (const host::TrialRecord& trial : first.record.trials) {
      if (trial.outcome) ended_.insert(trial.id);
    }
    profiled_ = first.record.profile.is_object();
  }

  void take(const host::StudyFacts& facts) {
    if (!profiled_ && facts.record.profile.is_object()) progress_.on_profile(facts.record.profile);
    profiled_ = profiled_ || facts.record.profile.is_object();
    for (size_t i = 0; i < facts.trials.size(); ++i) take(facts.record.trials[i], facts.trials[i].place);
    if (facts.record.best) progress_.on_best(*facts.record.best);
  }

 private:
  static ProgressSettings settings_for(const host::StudyFacts& facts) {
    ProgressSettings settings;
    settings.metric = facts.metric;
    settings.maximise = facts.maximise;
    settings.max_trials = facts.progress.max_trials;
    return settings;
  }

  void take(const host::TrialRecord& trial, host::TrialPlace place) {
    if (trial.outcome && ended_.insert(trial.id).second) progress_.on_trial_ended(trial);
    if (place == host::TrialPlace::running && !trial.outcome && started_[trial.id] != trial.attempt) {
      started_[trial.id] = trial.attempt;
      progress_.on_trial_started(trial);
    }
  }

  Progress progress_;
  std::set<uint64_t> ended_;
  std::map<uint64_t, uint32_t> started_;  // the attempt that was shown
  bool profiled_ = false;
};

}  // namespace

void follow(const std::filesystem::path& dir, Console& console) {
  host::StudyFacts facts = read(dir);
  if (facts.record.status != host::StudyStatus::running) return;
  Follower follower(facts, console);
  for (;;) {
    follower.take(facts);
    if (facts.record.status != host::StudyStatus::running) return;
    if (console.text().lost_within(kBetweenReads)) return;  // show --follow | head
    facts = read(dir);
  }
}

}  // namespace dsat::cli
