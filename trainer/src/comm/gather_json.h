// JSON from every rank to every rank.
#ifndef DSAT_TRAINER_COMM_GATHER_JSON_H_
#define DSAT_TRAINER_COMM_GATHER_JSON_H_

#include <vector>

#include "dsat/error.h"
#include "dsat/trainer/comm.h"

namespace dsat::trainer {

// Collective; meant for kilobytes. In the order of ranks.
std::vector<Json> gather_json(Comm& comm, const Json& mine);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_GATHER_JSON_H_
