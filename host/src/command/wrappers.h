// srun, mpirun and similar programs, which start another program several times, and their options.
// Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_WRAPPERS_H_
#define DSAT_HOST_COMMAND_WRAPPERS_H_

#include <cstddef>
#include <string_view>

#include "command/command_args.h"

namespace dsat::host {

bool is_wrapper(std::string_view program);

// Returns the word after the options of the wrapper at `wrapper`; argv.size(): there is none.
size_t end_of_wrapper_options(const Argv& argv, size_t wrapper);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_WRAPPERS_H_
