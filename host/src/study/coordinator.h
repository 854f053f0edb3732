// The heart of a study: strategies, trials, journal and runner, brought together in turns.
//
// Purpose: data flows one way round. A strategy asks for a trial; the coordinator admits it (limits, duplicates,
//   validity), journals it, has the runner start it, takes its end, journals that, and tells the strategy. A turn
//   handles all that is ready in one journal transaction; only after the commit is anything started or stopped.
// Order: a strategy hears of trials in the order of their ids as long as they end close together (kReorderWindow), so
//   that the same seed gives the same search at any concurrency. Why a window and not a strict order:
//   docs/decisions.md.
// Threading: control thread. `stop_level` may be raised from anywhere (1: stop gently, 2: at once), then the loop
// woken.
#ifndef DSAT_HOST_STUDY_COORDINATOR_H_
#define DSAT_HOST_STUDY_COORDINATOR_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "dsat/host/study.h"
#include "plugin/strategy.h"
#include "record/journal.h"
#include "record/trial.h"
#include "runner/runner.h"
#include "study/plan.h"
#include "study/results.h"

namespace dsat::host {

// How long an ended trial waits for older ones that still run before its strategy is told.
inline constexpr std::chrono::seconds kReorderWindow{5};
// Strategies are asked to keep one trial more open than can run for every so many that can: it takes the slot of one
// that has ended and waits for elders to be told.
inline constexpr int kSlotsPerSpareTrial = 5;
// This many duplicate or invalid requests in a row say that the space is exhausted.
inline constexpr int kFruitlessRequests = 1000;
// When the journal shows where a trial that still runs was started.
inline constexpr std::chrono::milliseconds kStartNoteDelay{250};
// A strategy's state is written whenever the journal is and so many events have come since. It grows with the study: of
// the earlier ones those stay that lie an eighth of all events apart.
inline constexpr uint64_t kEventsPerState = 64;
inline constexpr uint64_t kKeptStateShare = 8;
// So many consecutive failures with one last line, over at least two micro batches, are the script's own.
inline constexpr int kSameFailures = 3;

class Coordinator {
 public:
  Coordinator(Plan plan, Journal& journal, Runner& runner, Loop& loop, Results& results, Observer& observer,
              const std::atomic<int>& stop_level);

  // Takes up what the journal holds: trials, events, the strategy's state. Before run; a fresh study needs it not.
  Status resume();

  StudyResult run();

 private:
  // The trials of one configuration.
  struct Twins {
    std::optional<uint64_t> answering;  // the first that can answer for it
    uint32_t runs = 0;
  };
  struct Ending {
    StudyStatus status;
    std::string reason;
    bool resumable = false;  // trials that were running go on when the study is resumed
  };

  // coordinator.cc: the turn
  void turn();
  bool deliver_next();
  void tell(Trial& trial);
  void advance_phase();
  void check_stop_requests();
  std::vector<uint64_t> choose_starts();
  Status commit_turn();
  TrialSpec spec_of(const Trial& trial) const;
  void act(const std::vector<uint64_t>& starts);
  StudyResult close();
  std::string why_no_best() const;
  void log_last_words();

  // coordinator_ops.cc: what strategies ask for
  Status open_strategy(Phase phase);
  Strategy::Callbacks live_callbacks();
  bool handle(const StrategyEvent& event);
  std::optional<uint64_t> consider(const Op& request);
  void apply(const std::vector<Op>& ops);
  void stop_open_trials();
  Json study_json() const;
  std::optional<uint64_t> device_memory() const {
    return device_memory_bytes_ ? device_memory_bytes_ : plan_.slots.device_memory_bytes;
  }
  void save_state();

  // coordinator_trials.cc: how trials end
  void on_started(const TrialStart& start);
  void on_ended(const TrialEnd& end);
  void end_trial(Trial& trial, TrialEnd end);
  void learn_from(const TrialEnd& end, const Trial& trial);
  void count_failure(const Trial& trial);
  void watch_failures(const Trial& trial);
  void watch_improvement();
  void release_duplicates(const Trial& original);
  std::optional<uint64_t> ready_trial();

  // coordinator_resume.cc
  Status take_up(std::vector<JournalEvent>& events);
  Status rewind_if_limit_raised(std::vector<JournalEvent>& events);
  void disown(Trial& trial);
  void untell(Trial& trial);
  void recall(const std::vector<JournalEvent>& events);
  Status replay(const std::vector<JournalEvent>& events);
  Status replay_phase(Phase phase, const std::vector<const JournalEvent*>& events);
  Result<size_t> restore_state(const std::vector<const JournalEvent*>& events, const Strategy::Callbacks& callbacks);
  void requeue_trials();

  void end_study(StudyStatus status, std::string reason, bool resumable = false);
  // What runs is stopped and runs again when the study is resumed: no fault of the trials'.
  void fail(const Status& status) { end_study(StudyStatus::failed, status.message(), true); }
  void log(Observer::Severity severity, const std::string& message) { observer_.on_log(severity, message); }
  void forward_plugin_logs();
  void refresh_best();
  void compare_with_best(const Trial& trial);
  StrategyEvent exit_event(const Trial& trial) const;

  Plan plan_;
  Journal& journal_;
  Runner& runner_;
  Loop& loop_;
  Results& results_;
  Observer& observer_;

  std::vector<Trial> trials_;  // by id
  std::vector<Trial> drafts_;  // asked for in the current event, not yet accepted
  std::unordered_map<std::string, Twins> by_identity_;
  std::string baseline_identity_;
  std::set<uint64_t> waiting_;  // for room, in the order of their ids
  std::set<uint64_t> running_;
  std::set<uint64_t> ended_;      // by a run of their own, not yet delivered
  std::set<uint64_t> immediate_;  // refused, or a duplicate of a delivered trial: delivered before anything else
  std::map<uint64_t, Loop::Clock::time_point> ended_when_;
  std::multimap<uint64_t, uint64_t> duplicates_;  // original -> waiting duplicate
  std::set<uint64_t> to_stop_;
  std::set<uint64_t> stopping_;               // asked to stop, still running
  std::set<uint64_t> infrastructure_reruns_;  // run again once; the journal remembers them
  bool reruns_changed_ = false;
  std::set<uint64_t> dirty_;  // changed since the last commit

  Phase phase_ = Phase::profiler;
  std::unique_ptr<Strategy> strategy_;
  bool strategy_started_ = false;
  bool strategy_finished_ = false;
  std::string finish_reason_;
  std::optional<uint64_t> believed_best_;
  Json profile_;
  std::optional<uint64_t> device_memory_bytes_;  // given, else as a trial told
  uint64_t last_seq_ = 0, last_state_seq_ = 0;
  uint64_t kept_state_seq_ = 0;                // the last one that stays
  std::optional<uint64_t> passing_state_seq_;  // the last one, if the next takes its place
  int counted_trials_ = 0;
  int fruitless_ = 0;
  int open_trials_ = 0;  // of this phase: its strategy has not been told of their end
  std::vector<uint64_t> same_failures_;
  std::optional<uint64_t> result_told_;  // before the host was resumed; only the exit is to follow

  std::optional<BestRecord> best_;
  std::optional<BestRecord> better_;  // than best_, not yet told
  bool best_stale_ = false;
  bool group_lost_ = false;  // several turns could not be written: the journal stays as it was before them
  std::optional<Ending> ending_;
  const std::atomic<int>& stop_level_;
  int stop_level_acted_ = 0;
  std::optional<Loop::Clock::time_point> deadline_;
  uint64_t reorder_timer_ = 0;
  std::chrono::nanoseconds group_began_{0};  // in this thread's own time

  std::mutex log_mutex_;
  std::vector<std::pair<int, std::string>> plugin_logs_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_COORDINATOR_H_
