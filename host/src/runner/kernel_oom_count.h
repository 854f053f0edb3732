// Counts the processes that the kernel killed for lack of memory.
#ifndef DSAT_HOST_RUNNER_KERNEL_OOM_COUNT_H_
#define DSAT_HOST_RUNNER_KERNEL_OOM_COUNT_H_

#include <cstdint>
#include <optional>

namespace dsat::host {

// Returns the count for this process's cgroup or, if the cgroup has no counter, for this machine. Only its increase has
// a meaning. nullopt: unknown here.
std::optional<uint64_t> count_oom_kills();

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_KERNEL_OOM_COUNT_H_
