// Has the kernel killed a process for want of memory?
#ifndef DSAT_HOST_RUNNER_KERNEL_OOM_COUNT_H_
#define DSAT_HOST_RUNNER_KERNEL_OOM_COUNT_H_

#include <cstdint>
#include <optional>

namespace dsat::host {

// How many processes the kernel's OOM killer has killed: in this process's cgroup, or where that has no counter, on
// this machine. Only a rise of it means something. nullopt: not to be known here.
std::optional<uint64_t> count_oom_kills();

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_KERNEL_OOM_COUNT_H_
