// When a strategy's state is saved, and which saved states stay in the journal.
//
// Purpose: a saved state makes a resume fast, although the events alone suffice. A state is due every kEventsPerState
//   events. States grow with the study, so most earlier ones are removed: the rest lie a kKeptStateShare-th of all
//   events apart.
// Threading: control thread. Errors: none; a strategy that cannot save is a warning.
#ifndef DSAT_HOST_STUDY_TURN_SAVED_STATES_H_
#define DSAT_HOST_STUDY_TURN_SAVED_STATES_H_

#include <cstdint>
#include <optional>

#include "dsat/host/study.h"
#include "record/journal.h"
#include "study/state/strategy_run.h"

namespace dsat::host {

inline constexpr uint64_t kEventsPerState = 64;
inline constexpr uint64_t kKeptStateShare = 8;

class SavedStates {
 public:
  SavedStates(Journal& journal, Observer& observer) : journal_(journal), observer_(observer) {}

  // The journal's last event. A resumed study needs no new state before the next one.
  void resume_at(uint64_t seq) { last_event_ = last_attempt_ = seq; }
  // Another strategy begins. The saved states of the one before stay.
  void begin_phase() { to_replace_.reset(); }

  void note_event(uint64_t seq) { last_event_ = seq; }
  bool due() const { return last_event_ - last_attempt_ >= kEventsPerState; }
  // Writes the strategy's state, if it has one that a resume could use.
  void save(const StrategyRun& run);

 private:
  Journal& journal_;
  Observer& observer_;
  uint64_t last_event_ = 0;
  uint64_t last_attempt_ = 0;           // the event after which a state was saved, or could not be
  uint64_t last_kept_ = 0;              // the event of the last state that stays
  std::optional<uint64_t> to_replace_;  // the last state, if the next one takes its place
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_SAVED_STATES_H_
