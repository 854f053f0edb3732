// What one rank's process does from its start to its end, and how it reports why it failed.
//
// Threading: once in a process. Errors: none are thrown; a failure is the result.
#ifndef DSAT_TRAINER_RANKS_RANK_PROCESS_H_
#define DSAT_TRAINER_RANKS_RANK_PROCESS_H_

#include <functional>
#include <string>

#include "comm/rendezvous.h"
#include "dsat/trainer/world.h"

namespace dsat::trainer {

enum class FailureKind : char {
  none = '-',
  usage = 'u',          // wrong usage or configuration
  error = 'e',          // this rank's own
  out_of_memory = 'm',  // this rank's own
  peer_lost = 'p'       // another rank's failure, seen from here
};

struct RankResult {
  FailureKind kind = FailureKind::none;
  std::string message;  // one line; empty: no failure
};

// Runs the body as this rank; returns instead of throwing.
RankResult run_rank(const WorldOptions& options, const Json& config, const Rendezvous& rendezvous,
                    const std::function<void(World&)>& body);

// Every library on one thread: ranks share the machine's cores. Before the first tensor, in each process.
void use_one_thread();

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_RANKS_RANK_PROCESS_H_
