// How the turns of a study reach its journal: in groups, past the locks of others, and only while the file is there.
//
// Purpose: a simulation's trials exist in the study alone, so its turns are written in groups, and a crash loses the
//   last group. The length of a group goes by the processor time of its turns, so that writing takes no larger share on
//   a busy machine.
// Threading: control thread. Ownership: refers to its arguments. Errors: commit throws what the journal does.
#ifndef DSAT_HOST_STUDY_TURN_TURN_JOURNAL_H_
#define DSAT_HOST_STUDY_TURN_TURN_JOURNAL_H_

#include <atomic>
#include <chrono>
#include <functional>

#include "base/event_loop.h"
#include "dsat/host/study.h"
#include "record/journal.h"

namespace dsat::host {

// How often a study checks that its journal is still there.
inline constexpr std::chrono::milliseconds kLookForJournal{1000};
// Another program's lock on the journal: when the study says that it waits, and when it gives up.
inline constexpr std::chrono::milliseconds kSayThatItWaits{2000};
inline constexpr std::chrono::minutes kLongestWaitForLock{10};

class TurnJournal {
 public:
  // `stop_level`: an interrupted study does not wait long for a lock.
  TurnJournal(Journal& journal, Loop& loop, Observer& observer, const std::atomic<int>& stop_level);
  TurnJournal(const TurnJournal&) = delete;
  ~TurnJournal() { journal_.on_busy = nullptr; }

  Journal& journal() { return journal_; }
  // Calls `on_lost`, once, when somebody has deleted or replaced the file.
  void watch(std::function<void()> on_lost);
  // Is the group of turns long enough to be written? `delay`: how long it may stay unwritten; 0: not at all.
  bool is_due(std::chrono::milliseconds delay);
  void commit(std::chrono::milliseconds delay);
  // The last group could not be written, which leaves the journal as it was before it.
  bool has_lost_group() const { return has_lost_group_; }

 private:
  bool keeps_waiting(std::chrono::milliseconds waited);

  Journal& journal_;
  Loop& loop_;
  Observer& observer_;
  const std::atomic<int>& stop_level_;
  std::chrono::nanoseconds group_began_{0};  // in this thread's own time
  bool has_lost_group_ = false;
  bool has_reported_waiting_ = false;  // for the lock that it waits for now
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_TURN_JOURNAL_H_
