// Starts the ranks of a training on this machine and answers for them.
//
// Ranks are forked, not started anew: LibTorch takes a second to load, and it is loaded already. That is safe while
// this process has one thread and has touched no tensor.
// If a rank fails the others are ended; the result is the first cause, not what follows from it. A rank whose process
// ends before its body has returned has failed, whatever its status. Ranks end with this process, however it ends.
// SIGTERM is handed on to them: ranks that handle it end in their own time, and this process after them. Those that
// take longer than a grace, or until a second SIGTERM, are ended, and meanwhile a line reports for whom it waits. Each
// rank writes signs of life to a pipe; a rank that is stopped, and ranks of which none moves any more, are ended too
// (rank_watch.h).
// Threading: once in a process, from its only thread.
#ifndef DSAT_TRAINER_RANKS_LAUNCHER_H_
#define DSAT_TRAINER_RANKS_LAUNCHER_H_

#include <chrono>
#include <functional>
#include <string>

#include "ranks/rank_process.h"

namespace dsat::trainer {

struct LaunchOptions {
  std::string program = "dsat-trial";   // in the lines about SIGTERM
  std::chrono::seconds stop_grace{60};  // from SIGTERM on
};

// Runs body(rank) in `ranks` processes and waits for all. Errors of the system itself: dsat::Error.
RankResult launch(int ranks, const std::function<RankResult(int rank)>& body, const LaunchOptions& options = {});

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_RANKS_LAUNCHER_H_
