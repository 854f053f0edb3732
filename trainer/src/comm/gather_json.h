// JSON from every rank to every rank: for what ranks need to know of each other's models, a few kilobytes.
//
// Threading: as the group's other collectives. Errors: PeerLost.
#ifndef DSAT_TRAINER_COMM_GATHER_JSON_H_
#define DSAT_TRAINER_COMM_GATHER_JSON_H_

#include <vector>

#include "dsat/error.h"
#include "dsat/trainer/comm.h"

namespace dsat::trainer {

// Collective. The result has one entry a rank, in their order; memory and traffic are four bytes for each byte of the
// longest text, times the number of ranks.
std::vector<Json> gather_json(Comm& comm, const Json& mine);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_GATHER_JSON_H_
