// Judges from the ranks' signs of life whether a training still lives.
//
// A rank that does not even beat has been stopped. When all beat but none computes, reads or writes anything any more,
// they wait for each other or for what never comes. A training that is slow, but moves, is left alone; a rank outside
// the engine may wait for its data, and is given longer, or for a child process, and is given as long as that runs.
// Threading: one thread. Times are given, so that it can be tested without waiting. Errors: none.
#ifndef DSAT_TRAINER_WATCH_RANK_WATCH_H_
#define DSAT_TRAINER_WATCH_RANK_WATCH_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "watch/heartbeat.h"

namespace dsat::trainer {

class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSilence{6};        // without a beat
  static constexpr std::chrono::seconds kStillness{8};      // beats, but no rank moves: all wait in the engine
  static constexpr std::chrono::seconds kOwnStillness{60};  // or some in code of the training's own

  void started(int rank, Clock::time_point now);
  void receive(int rank, const Beat& beat, Clock::time_point now);
  void ended(int rank);

  // The ranks that run and wait in no operation; all that run where each waits in one.
  std::vector<int> computing() const;

  // What is wrong, in one line. To be called every second or more often; if it was not, this process itself has been
  // stopped meanwhile, and all clocks begin anew.
  std::optional<std::string> verdict(Clock::time_point now);
  // The verdict on a rank that does not beat.
  static std::string silence_of(int rank);

 private:
  std::chrono::seconds patience() const;

  struct Rank {
    Clock::time_point last_beat_at;
    std::optional<Beat> beat;
  };
  std::map<int, Rank> ranks_;  // that run
  Clock::time_point moved_, looked_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WATCH_RANK_WATCH_H_
