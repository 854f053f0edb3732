// Chooses rendezvous ports for trials. A port is free when it is chosen, and no other live trial has it.
// Threading: control thread. A port cannot be held until the trial binds it, so another program may take it. Such a
// trial is an infrastructure failure and runs again on another port.
#ifndef DSAT_HOST_RUNNER_PORTS_H_
#define DSAT_HOST_RUNNER_PORTS_H_

#include <cstdint>
#include <set>

namespace dsat::host {

class PortPool {
 public:
  PortPool();

  // Returns a free port that no live trial has. Throws dsat::Error if there is none.
  uint16_t acquire();
  void release(uint16_t port);

 private:
  std::set<uint16_t> live_;
  uint16_t next_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PORTS_H_
