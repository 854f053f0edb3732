// The heart of a study: strategies, trials, journal and runner, brought together in turns.
//
// The flow of a study, one turn after another:
//
//   1. An event: the start of a strategy, the result of a trial, its exit. The strategy that asked for a trial learns
//      of its end, in the order of ids as far as trials end close together (TrialTable::next_to_deliver; why:
//      docs/decisions/0001-ended-trials-in-order.md).
//   2. The plugin answers it with ops (Strategy::handle). New trials are admitted while it asks (NewTrials).
//   3. Event and ops go to the journal, and the ops take effect: new trials wait, stops are noted, a profile or an end
//      of the search is kept. More events follow as long as there are any.
//   4. Trials that there is room for are marked as running, and the journal's transaction is committed. A simulation
//      commits several turns together.
//   5. Only now does the runner start and stop processes. What they report comes back through the loop
//      (on_started, on_ended) and is the next turn's event.
//
// The profiler's turns come first, later the searcher's. The turns of the host's own strategies come between and after
// them (phases.h). end_study is the one way to an end; run() returns when nothing runs any more. What a study knows is
// kept in parts: TrialTable (trials and queues), StrategyRun (the strategy at work), BestSoFar, FailureWatch,
// SavedStates.
//
// The class lies in four files: coordinator.cc (the turn), coordinator_trials.cc (how trials start and end),
// coordinator_results.cc (the best, the files, the close), coordinator_resume.cc (all of it taken up from the journal).
//
// Threading: control thread. `stop_level` may be raised from anywhere (1: stop gently, 2: at once), then the loop
// woken. Errors: resume throws dsat::Error; run reports every failure in its result.
#ifndef DSAT_HOST_STUDY_TURN_COORDINATOR_H_
#define DSAT_HOST_STUDY_TURN_COORDINATOR_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "dsat/host/study.h"
#include "finals/flat_steps.h"
#include "plan/device_memory.h"
#include "plan/plan.h"
#include "record/journal.h"
#include "record/trial.h"
#include "runner/runner.h"
#include "study/results/results.h"
#include "study/state/best.h"
#include "study/state/own_configuration.h"
#include "study/state/phases.h"
#include "study/state/plugin_log.h"
#include "study/state/searches.h"
#include "study/state/strategy_run.h"
#include "study/state/trial_table.h"
#include "study/turn/saved_states.h"
#include "study/turn/time_budget.h"
#include "study/watch/batch_watch.h"
#include "study/watch/failure_watch.h"
#include "study/watch/memory_doubt.h"
#include "study/watch/script_watch.h"

namespace dsat::host {

// How often a study checks that its journal is still there.
inline constexpr std::chrono::milliseconds kLookForJournal{1000};
// Another program's lock on the journal: when the study says that it waits, and when it gives up.
inline constexpr std::chrono::milliseconds kSayThatItWaits{2000};
inline constexpr std::chrono::minutes kLongestWaitForLock{10};
// If a trial still runs this long after its start, the journal gets where it was started.
inline constexpr std::chrono::milliseconds kStartNoteDelay{250};
// Why a study, or its search, ends for want of time.
inline constexpr const char* kTimeIsSpent = "the time budget is spent";

class Coordinator {
 public:
  // The references must outlive the coordinator.
  Coordinator(Plan plan, Journal& journal, Runner& runner, Loop& loop, Results& results, Observer& observer,
              const std::atomic<int>& stop_level);

  // How a study is taken up.
  struct TakeUp {
    bool another_searcher = false;  // the plan names another one than the journal; ended trials are observations to it
    bool more_time = false;         // a time budget was given anew
    std::chrono::milliseconds time_used{0};  // of the time budget, by an earlier process of the same run
  };
  // Takes up what the journal holds: trials, events, the strategy's state. Call before run(). Not needed for a new
  // study.
  void resume(const TakeUp& how);

  StudyResult run();

 private:
  struct Ending {
    StudyStatus status;
    std::string reason;
    bool resumable = false;  // trials that were running go on when the study is resumed
  };

  void turn();
  void deliver_events();
  void start_strategy();
  void derive_space_of_search();
  bool deliver_next();
  void deliver(uint64_t id);
  bool advance_phase();
  void doubt_restore(const PhaseView& view);
  bool begin_phase(std::optional<NextPhase> next);
  void end_search(std::string reason, bool of_time);
  void watch_time();
  void watch_budget();
  void add_cost(uint64_t id, const std::string& ended_at);
  void watch_journal();
  bool keeps_waiting(std::chrono::milliseconds waited);
  PhaseView phase_view() const;
  void handle(const StrategyEvent& event);
  void apply(std::vector<Trial> new_trials, const std::vector<Op>& ops);
  void stop_waiting();
  std::vector<uint64_t> choose_starts();
  void end_without_slots(uint64_t id);
  void commit_turn();
  void put_changes();
  void act(const std::vector<uint64_t>& starts);
  bool is_found_in_folder(const TrialSpec& spec);

  void on_started(const TrialStart& start);
  void on_ended(const TrialEnd& end);
  void end_trial(TrialEnd end);
  void answer_duplicates(uint64_t original);
  void learn_from(const Trial& trial);

  void check_stop_requests();
  void end_study(StudyStatus status, std::string reason, bool resumable = false);
  void fail(const std::exception& error);
  StudyResult close();
  void write_last();

  void take_up(std::vector<Trial> trials, std::vector<JournalEvent> events, const TakeUp& how);
  template <class T>
  T meta_as(const char* key);
  void bring_back_strategy(const std::vector<JournalEvent>& events);
  void note_earlier_limits(const Json& start);
  void learn_from_events(const std::vector<JournalEvent>& events);
  void stop_open();
  void hand_search_over(uint64_t first_event);
  void keep_state_versions();
  std::vector<TrialEnd> requeue_running();
  void end_recovered(TrialEnd end);

  void refresh_best();
  void write_results(const std::string& reason, bool now);
  void log(Observer::Severity severity, const std::string& message) { observer_.on_log(severity, message); }

  Plan plan_;
  Journal& journal_;
  Runner& runner_;
  Loop& loop_;
  Results& results_;
  Observer& observer_;
  const std::atomic<int>& stop_level_;

  PluginLog plugin_log_;
  TrialTable trials_;
  StrategyRun run_;
  BestSoFar best_;
  FailureWatch failures_;
  BatchWatch batches_;
  FlatSteps steps_;
  ScriptWatch script_;
  SavedStates states_;
  Searches searches_;
  Json profile_;  // or null
  DeviceMemory device_memory_;
  MemoryDoubt doubt_;
  bool trusts_folders_ = false;  // the journal was repaired: kTrustsFolders
  OwnConfiguration own_;

  std::optional<Ending> ending_;
  int stop_level_acted_ = 0;
  TimeBudget time_;
  double spent_device_hours_ = 0;  // of every run of every trial, also of those that ran again or were taken back
  bool spent_changed_ = true;
  uint64_t search_timer_ = 0;
  uint64_t budget_timer_ = 0;
  uint64_t summary_timer_ = 0;
  bool has_reported_waiting_ = false;  // for the lock that it waits for now
  uint64_t reorder_timer_ = 0;
  // Turns that are committed together: when the first began, in this thread's own time, and whether they could not be
  // written, which leaves the journal as it was before them.
  std::chrono::nanoseconds group_began_{0};
  bool group_lost_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_COORDINATOR_H_
