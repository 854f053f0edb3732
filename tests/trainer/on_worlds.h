// Runs the body of a test as a training program's ranks run theirs, each in a process and a World of its own.
#ifndef DSAT_TESTS_TRAINER_ON_WORLDS_H_
#define DSAT_TESTS_TRAINER_ON_WORLDS_H_

#include <functional>
#include <stdexcept>
#include <string>

#include "comm/rendezvous.h"
#include "dsat/base/ports.h"
#include "dsat/trainer/world.h"
#include "ranks/launcher.h"
#include "ranks/rank_process.h"

namespace dsat::trainer {

// `body` returns what is wrong, or nothing.
inline RankResult on_worlds(int ranks, const std::function<std::string(World&)>& body) {
  const uint16_t port = free_port();
  return launch(ranks, [&](int rank) {
    use_one_thread();
    return run_rank({}, nullptr, {rank, ranks, "127.0.0.1", port}, [&](World& world) {
      const std::string wrong = body(world);
      if (!wrong.empty()) throw std::runtime_error(wrong);
    });
  });
}

}  // namespace dsat::trainer

#endif  // DSAT_TESTS_TRAINER_ON_WORLDS_H_
