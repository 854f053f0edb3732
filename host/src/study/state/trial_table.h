// The trials of a study: one state each, and every queue as a consequence of it.
//
// Purpose: the only place that changes a trial's state. A change that may_follow() does not allow throws. The queues
//   are kept beside the trials and follow each change. take_changed() names the trials that the journal has to write.
// Threading: control thread. Errors: dsat::Error, DSAT_INTERNAL, for a state change that is not allowed and for an id
//   that does not exist.
#ifndef DSAT_HOST_STUDY_STATE_TRIAL_TABLE_H_
#define DSAT_HOST_STUDY_STATE_TRIAL_TABLE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "record/trial.h"

namespace dsat::host {

// How long an ended trial waits for older ones that still run before its strategy learns of it.
inline constexpr std::chrono::seconds kReorderWindow{5};

// The state changes of a study. A resumed study rewrites states before the table has them (study/resume/rewind.h).
bool may_follow(TrialState from, TrialState to);

class TrialTable {
 public:
  using Time = Loop::Clock::time_point;

  TrialTable() = default;
  // The trials of a journal. Trials that were running when it was written are running here; the caller finds out what
  // became of them.
  TrialTable(std::vector<Trial> trials, Time now);

  const std::vector<Trial>& all() const { return trials_; }  // by id
  const Trial& operator[](uint64_t id) const { return trials_[checked(id)]; }
  uint64_t size() const { return trials_.size(); }
  const std::set<uint64_t>& waiting() const { return waiting_; }  // for room
  const std::set<uint64_t>& running() const { return running_; }  // stopping ones, too
  bool any_open() const;                                          // not delivered

  // The first trial whose result answers for this configuration, and how many trials of it cost a run.
  std::optional<uint64_t> answering(const std::string& identity) const;
  uint32_t runs_of(const std::string& identity) const;
  int counted() const { return counted_; }      // against the trial limit
  int fruitless() const { return fruitless_; }  // the number of latest requests in a row that cost no run
  void begin_row() { fruitless_ = 0; }          // another searcher begins

  // A new trial: waiting, or ended when it has its outcome already.
  const Trial& add(Trial trial, Time now);
  void start(uint64_t id);            // waiting -> running, as its next attempt
  void take_back_start(uint64_t id);  // running -> waiting: it was not started after all; the journal keeps what it has
  void note_start(const TrialStart& start);
  void run_again(uint64_t id);       // running -> waiting
  void end(TrialEnd end, Time now);  // -> ended, with this outcome
  void deliver(uint64_t id);         // ended -> delivered
  // Gives the waiting duplicates of a delivered trial its outcome. Returns their ids.
  std::vector<uint64_t> answer_duplicates(uint64_t original, const std::string& ended_at, Time now);

  // The next trial whose strategy is to learn of its end. Trials come in the order of ids, but an ended trial waits for
  // older ones no longer than kReorderWindow. Without `id`: if a trial waits, `not_before` says until when.
  struct Next {
    std::optional<uint64_t> id;
    std::optional<Time> not_before;
  };
  Next next_to_deliver(Time now) const;

  // A stop may be requested at any time. Waiting trials end in the same turn, running ones are stopped after its
  // commit.
  void request_stop(uint64_t id) { stop_requests_.insert(id); }
  bool is_to_stop(uint64_t id) const { return stop_requests_.count(id) != 0; }
  void request_stop_of_running() { stop_requests_.insert(running_.begin(), running_.end()); }
  void request_stop_of_open();
  // The waiting trials that are to stop. Their stop requests are forgotten; the caller ends the trials.
  std::vector<uint64_t> take_stops_of_waiting();
  // The running trials that are to stop; they are stopping from now on. All other requests are void.
  std::vector<uint64_t> take_stops_of_running();

  void mark_changed(uint64_t id) { changed_.insert(id); }
  std::set<uint64_t> take_changed();

 private:
  // The trials of one configuration.
  struct Configuration {
    std::optional<uint64_t> answering;
    uint32_t runs = 0;
  };
  uint64_t checked(uint64_t id) const;
  Trial& get(uint64_t id) { return trials_[checked(id)]; }
  void count(Trial& trial);
  void change_state(Trial& trial, TrialState to, Time now);
  void enter_queue(const Trial& trial, Time now);
  void leave_queue(const Trial& trial);

  std::vector<Trial> trials_;
  std::unordered_map<std::string, Configuration> configurations_;  // by identity
  int counted_ = 0;
  int fruitless_ = 0;

  std::set<uint64_t> waiting_;
  std::multimap<uint64_t, uint64_t> duplicates_;  // original -> a duplicate that waits for it
  std::set<uint64_t> running_;
  std::set<uint64_t> ended_without_run_;  // refused or a duplicate: delivered before all others
  std::map<uint64_t, Time> ended_;        // after a run of their own, and when
  std::set<uint64_t> stop_requests_;
  std::set<uint64_t> changed_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_TRIAL_TABLE_H_
