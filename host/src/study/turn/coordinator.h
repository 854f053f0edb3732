// The turns of a study: events are delivered, what follows from them is written, and only then trials start and stop.
//
// The flow of a study, one turn after another:
//
//   1. An event happens: the start of a strategy, the result of a trial, its exit. Ended trials are delivered in the
//      order of their ids if they end close together (TrialTable::next_to_deliver; why:
//      docs/decisions/0001-ended-trials-in-order.md).
//   2. The strategy answers the event with ops (Strategy::handle). New trials are admitted while it asks (NewTrials).
//   3. Event and ops go to the journal, and the ops take effect: new trials wait, stops are noted, a profile or an end
//      of the search is kept. More events follow as long as there are any.
//   4. Trials that there is room for are marked as running, and the journal's transaction is committed. A simulation
//      commits several turns together.
//   5. Only now does the runner start and stop processes. What they report comes back through the loop
//      (on_started, on_ended) and is the next turn's event.
//
// The profiler's turns come first, later the searcher's. The turns of the host's own strategies come between and after
// them (study/state/phases.h). end_study is the one way to an end; run() returns when nothing runs any more. StudyState
// holds all that a study knows.
//
// Threading: control thread. `stop_level` may be raised from anywhere (1: stop gently, 2: at once), then the loop
// woken. Errors: run reports every failure in its result.
#ifndef DSAT_HOST_STUDY_TURN_COORDINATOR_H_
#define DSAT_HOST_STUDY_TURN_COORDINATOR_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "dsat/host/study.h"
#include "record/journal.h"
#include "runner/runner.h"
#include "study/results/results.h"
#include "study/state/plugin_log.h"
#include "study/state/study_state.h"
#include "study/turn/budgets.h"
#include "study/turn/saved_states.h"
#include "study/turn/turn_journal.h"

namespace dsat::host {

// If a trial still runs this long after its start, the journal gets where it was started.
inline constexpr std::chrono::milliseconds kStartNoteDelay{250};

class Coordinator {
 public:
  // The parts that a study works with. The references must outlive the coordinator.
  struct Surroundings {
    TurnJournal& journal;
    Runner& runner;
    Loop& loop;
    Results& results;
    Observer& observer;
    PluginLog& plugin_log;
    const std::atomic<int>& stop_level;
  };
  // `state`: of a new study, or as resumed_state gives it.
  Coordinator(StudyState state, const Surroundings& surroundings);

  StudyResult run();

 private:
  void turn();
  void deliver_events();
  void start_strategy();
  bool deliver_next();
  void deliver(uint64_t id);
  bool advance_phase();
  void handle(const StrategyEvent& event);
  void apply(std::vector<Trial> new_trials, const std::vector<Op>& ops);
  void act_on(const std::vector<Finding>& findings);
  std::vector<uint64_t> choose_starts();
  void start_and_stop(const std::vector<uint64_t>& starts);
  bool is_found_in_folder(const TrialSpec& spec);

  void recover_running();
  void on_started(const TrialStart& start);
  void on_ended(const TrialEnd& end);
  void end_trial(TrialEnd end);
  void answer_duplicates(uint64_t original);
  void stop_waiting();
  void refuse_waiting();

  void check_stop_requests();
  void end_search(std::string reason, bool of_time);
  void end_study(StudyStatus status, std::string reason, bool resumable = false);
  void fail(const std::exception& error);

  void refresh_best();
  void write_results(const std::string& reason, bool now);
  StudyResult close();

  StudyState state_;
  TurnJournal& turns_;
  Journal& journal_;
  Runner& runner_;
  Loop& loop_;
  Results& results_;
  Observer& observer_;
  PluginLog& plugin_log_;
  const std::atomic<int>& stop_level_;
  int stop_level_acted_ = 0;
  SavedStates saved_states_;
  Budgets budgets_;
  uint64_t summary_timer_ = 0;
  uint64_t reorder_timer_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_COORDINATOR_H_
