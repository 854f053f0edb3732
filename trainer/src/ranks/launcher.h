// Starts the ranks of a training on this machine and answers for them.
//
// Ranks are forked, not started anew: LibTorch takes a second to load, and it is loaded already. That is safe while
// this process has one thread and has touched no tensor.
// If a rank fails the others are ended; the result is the first cause, not what follows from it. A rank whose process
// ends before its body has returned has failed, whatever its status. Ranks end with this process, however it ends.
// SIGTERM is handed on to them: ranks that handle it end in their own time, and this process after them. Each rank
// writes signs of life to a pipe; a rank that is stopped, and ranks of which none moves any more, are ended too
// (rank_watch.h).
// Threading: once in a process, from its only thread.
#ifndef DSAT_TRAINER_RANKS_LAUNCHER_H_
#define DSAT_TRAINER_RANKS_LAUNCHER_H_

#include <functional>

#include "ranks/rank_process.h"

namespace dsat::trainer {

// Runs body(rank) in `ranks` processes and waits for all. Errors of the system itself: dsat::Error.
RankResult launch(int ranks, const std::function<RankResult(int rank)>& body);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_RANKS_LAUNCHER_H_
