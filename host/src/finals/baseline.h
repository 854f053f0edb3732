// Measures the user's own configuration once, before the search begins. The searcher finds it among the observations of
// its start.
//
// Start event: {"overrides": {...}}: the overrides that turn the base configuration into the user's own.
#ifndef DSAT_HOST_FINALS_BASELINE_H_
#define DSAT_HOST_FINALS_BASELINE_H_

#include "finals/host_strategy.h"

namespace dsat::host {

class Baseline : public HostStrategy {
 protected:
  void start(const Json& brief) override;
  void trial_ended(const Ended& ended) override;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_BASELINE_H_
