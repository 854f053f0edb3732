// Rendezvous ports for trials: probed, and never one of a live trial.
//
// Threading: control thread. The probe cannot hold a port until the trial binds it (the trial could not bind it then),
// so another program may still take it: such a trial is an infrastructure failure and runs again on another port.
#ifndef DSAT_HOST_RUNNER_PORTS_H_
#define DSAT_HOST_RUNNER_PORTS_H_

#include <cstdint>
#include <set>

namespace dsat::host {

class PortPool {
 public:
  PortPool();

  // A port that is free now and that no live trial has. Throws dsat::Error when there is none.
  uint16_t acquire();
  void release(uint16_t port);

 private:
  std::set<uint16_t> live_;
  uint16_t next_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PORTS_H_
