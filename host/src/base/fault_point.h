// Named points where end-to-end tests end the program as a power loss would.
//
// DSAT_FAULT=NAME[:N] kills the process when it passes the point NAME for the N-th time (default 1). Without the
// variable a point costs one comparison. Threading: control thread. Errors: none.
#ifndef DSAT_HOST_BASE_FAULT_POINT_H_
#define DSAT_HOST_BASE_FAULT_POINT_H_

namespace dsat::host {

void fault_point(const char* name);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_FAULT_POINT_H_
