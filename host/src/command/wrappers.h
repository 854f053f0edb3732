// srun, mpirun and their like: programs that start another one side by side, and which words are options of theirs.
//
// Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_WRAPPERS_H_
#define DSAT_HOST_COMMAND_WRAPPERS_H_

#include <cstddef>
#include <string_view>

#include "command/command_args.h"

namespace dsat::host {

bool is_wrapper(std::string_view program);

// The word behind the options of the wrapper that stands at `wrapper`; argv.size(): there is none.
size_t end_of_wrapper_options(const Argv& argv, size_t wrapper);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_WRAPPERS_H_
