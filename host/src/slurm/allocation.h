// The Slurm allocation in which this program runs: its nodes, their devices, and its end.
// Threading: asks the controller by scontrol and waits. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_SLURM_ALLOCATION_H_
#define DSAT_HOST_SLURM_ALLOCATION_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/environment.h"
#include "slots/slot_pool.h"

namespace dsat::host {

struct AllocationNode {
  std::string name;
  int gpus = 0;
  std::string address{};  // at which the other nodes reach it
};

struct Allocation {
  std::string job, node_list;  // as Slurm writes it: "n[1-4]"
  std::vector<AllocationNode> nodes;
  int tasks_per_node = 1;
  std::optional<std::chrono::system_clock::time_point> end;  // nullopt: no end

  const AllocationNode* find(const std::string& node) const;
  // Returns a slot for each GPU; on nodes without GPUs, a slot for each task that the allocation was asked for.
  std::vector<Slot> slots() const;
};

// Whether this program is inside an allocation, by SLURM_JOB_ID.
bool is_in_allocation(const Environment& environment);

// Throws: not inside one, no Slurm here, Slurm too old for steps that share a node (before 20.11), or an answer that
// makes no sense.
Allocation find_allocation(const Environment& environment);

// Returns the present end, since an administrator may have given more time.
std::optional<std::chrono::system_clock::time_point> allocation_end(const std::string& job,
                                                                    const Environment& environment);

// Whether the allocation has certainly ended. No answer means false.
bool is_allocation_over(const std::string& job, const Environment& environment);

// Returns the names in a list such as "n[1-4]"; empty: Slurm cannot read it.
std::vector<std::string> expand_node_list(const std::string& list, const Environment& environment);

// Parses the output of `scontrol show job -d`. Node lists keep their brackets: "n[1-4]".
Allocation parse_allocation(const std::string& text);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_ALLOCATION_H_
