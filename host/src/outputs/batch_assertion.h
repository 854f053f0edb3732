// What DeepSpeed's check of batch sizes says of the number of processes.
// Threading: pure functions.
#ifndef DSAT_HOST_OUTPUTS_BATCH_ASSERTION_H_
#define DSAT_HOST_OUTPUTS_BATCH_ASSERTION_H_

#include <string>

#include "dsat/error.h"

namespace dsat::host {

// DeepSpeed refuses "train_batch_size 32 != 4 * 1 * 1" and means by the last number the processes that it found.
// Returns what to do if the configuration was made for another number, as an addition to the reason; else empty.
std::string explain_batch_assertion(const std::string& line, const Json& config);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_BATCH_ASSERTION_H_
