// Runs the body of a test on several ranks, each a process of its own.
#ifndef DSAT_TESTS_TRAINER_ON_RANKS_H_
#define DSAT_TESTS_TRAINER_ON_RANKS_H_

#include <exception>
#include <functional>
#include <string>

#include "dsat/trainer/comm.h"
#include "launcher.h"
#include "rendezvous.h"

namespace dsat::trainer {

// `body` returns what is wrong, or nothing.
inline RankResult on_ranks(int ranks, const std::function<std::string(Comm&)>& body) {
  const uint16_t port = free_port();
  return launch(ranks, [&](int rank) -> RankResult {
    try {
      use_one_thread();
      const auto comm = join({rank, ranks, "127.0.0.1", port});
      const std::string wrong = body(*comm);
      comm->barrier();
      return wrong.empty() ? RankResult{} : RankResult{FailureKind::error, wrong};
    } catch (const PeerLost& error) {
      return {FailureKind::peer_lost, error.what()};
    } catch (const std::exception& error) {
      return {FailureKind::error, error.what()};
    }
  });
}

}  // namespace dsat::trainer

#endif  // DSAT_TESTS_TRAINER_ON_RANKS_H_
