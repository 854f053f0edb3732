// Makes the simulation of a resumed study from Simulation::source.
#ifndef DSAT_HOST_SIM_LOAD_SIMULATION_H_
#define DSAT_HOST_SIM_LOAD_SIMULATION_H_

#include "dsat/host/simulation.h"

namespace dsat::host::sim {

// Null, the source of a program's own simulation, gives a Simulation without surface. Throws dsat::Error: the source is
// damaged.
Simulation simulation_from_source(const Json& source);

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_LOAD_SIMULATION_H_
