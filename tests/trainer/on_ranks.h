// Runs the body of a test on several ranks, each a process of its own.
#ifndef DSAT_TESTS_TRAINER_ON_RANKS_H_
#define DSAT_TESTS_TRAINER_ON_RANKS_H_

#include <c10/util/Exception.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "comm/rendezvous.h"
#include "dsat/base/ports.h"
#include "dsat/trainer/comm.h"
#include "ranks/launcher.h"

namespace dsat::trainer {

// Gloo alone: as between ranks of other launchers, which may be on other hosts.
enum class Transport { shared_memory, gloo };

// `body` returns what is wrong, or nothing.
inline RankResult on_ranks(int ranks, const std::function<std::string(Comm&)>& body,
                           Transport transport = Transport::shared_memory) {
  const uint16_t port = free_port();
  return launch(ranks, [&](int rank) -> RankResult {
    try {
      use_one_thread();
      const Rendezvous rendezvous{rank, ranks, "127.0.0.1", port};
      const auto comm = transport == Transport::gloo ? join_gloo(rendezvous) : join(rendezvous);
      const std::string wrong = body(*comm);
      comm->barrier();
      return wrong.empty() ? RankResult{} : RankResult{FailureKind::error, wrong};
    } catch (const PeerLost& error) {
      return {FailureKind::peer_lost, error.what()};
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      return {FailureKind::error, text.substr(0, text.find('\n'))};
    } catch (const std::exception& error) {
      return {FailureKind::error, error.what()};
    }
  });
}

// What rank 0 learns in `operation` when rank 1 has left: the launcher would show the cause and not this.
inline RankResult without_rank_1(const std::function<void(Comm&)>& operation) {
  return on_ranks(2, [&](Comm& comm) -> std::string {
    if (comm.rank() == 1) throw PeerLost("rank 1 leaves");
    try {
      operation(comm);
    } catch (const PeerLost& error) {
      throw std::runtime_error(error.what());
    }
    return "nobody is missed";
  });
}

}  // namespace dsat::trainer

#endif  // DSAT_TESTS_TRAINER_ON_RANKS_H_
