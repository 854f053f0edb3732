// Named points at which the end-to-end tests end the program as a power cut would: at once, with nothing run.
//
// DSAT_FAULT=NAME[:N] kills the process at the N-th passing of the point NAME (the first without N). Without the
// variable a point costs one comparison. Threading: control thread. Errors: none.
#ifndef DSAT_HOST_BASE_FAULT_POINT_H_
#define DSAT_HOST_BASE_FAULT_POINT_H_

namespace dsat::host {

void fault_point(const char* name);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_FAULT_POINT_H_
