// Simulation::source and back: what a resumed study makes its simulation of.
#ifndef DSAT_HOST_SIM_LOAD_SIMULATION_H_
#define DSAT_HOST_SIM_LOAD_SIMULATION_H_

#include "dsat/host/simulation.h"

namespace dsat::host::sim {

// Null, which a program's own simulation has, gives one without a surface. Throws dsat::Error: the source is damaged.
Simulation simulation_from_source(const Json& source);

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_LOAD_SIMULATION_H_
