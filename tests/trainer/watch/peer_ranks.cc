// A program whose ranks another launcher starts, for peers_test: `peer_ranks meet|hang|compute`.
// It joins the others as any training does and then does what its argument says.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "dsat/trainer/world.h"
#include "watch/heartbeat.h"

namespace {

using dsat::trainer::WaitingIn;
using dsat::trainer::World;

// Longer than ranks may wait for each other while none of them moves.
constexpr std::chrono::seconds kLongComputation{10};

void compute() {
  const auto end = std::chrono::steady_clock::now() + kLongComputation;
  while (std::chrono::steady_clock::now() < end) {
  }
}

void body(World& world) {
  const std::string& what = world.arguments().at(0);
  world.comm().barrier();
  std::puts("met");
  std::fflush(stdout);
  const WaitingIn waiting(world.rank() == 0 ? "the sum of a" : "the gathering of b");
  if (what == "compute" && world.rank() == 1) compute();
  while (what == "hang" && world.rank() == 1) ::pause();
  do {
    world.comm().barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // many of these run at a time
  } while (what == "meet");
}

}  // namespace

int main(int argc, char** argv) { return dsat::trainer::run(argc, argv, body); }
