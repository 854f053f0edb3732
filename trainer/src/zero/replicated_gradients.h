// Stages 0 and 1: every rank holds all gradients in one flat array, which is reduced in buckets.
//
// Threading: the compute thread, on which backward runs; the communication thread sums a bucket that has left.
// Ownership: borrows the context; the gradients of `parameters` become views of the array. Errors: PeerLost;
// dsat::Error.
#ifndef DSAT_TRAINER_ZERO_REPLICATED_GRADIENTS_H_
#define DSAT_TRAINER_ZERO_REPLICATED_GRADIENTS_H_

#include <memory>

#include "zero/gradients.h"
#include "zero/parameters.h"
#include "zero/zero_context.h"

namespace dsat::trainer {

std::unique_ptr<Gradients> make_replicated_gradients(const ZeroContext& context, Parameters& parameters);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_REPLICATED_GRADIENTS_H_
