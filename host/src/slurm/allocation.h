// The Slurm allocation that this program runs in: its nodes, their devices, and when it ends.
//
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
  std::string address{};  // where the other nodes reach it
};

struct Allocation {
  std::string job, node_list;  // as Slurm writes it: "n[1-4]"
  std::vector<AllocationNode> nodes;
  int tasks_per_node = 1;
  std::optional<std::chrono::system_clock::time_point> end;  // nullopt: it has none

  const AllocationNode* find(const std::string& node) const;
  // A slot for every GPU; on nodes without any, one for every task that the allocation was asked for.
  std::vector<Slot> slots() const;
};

// Is this program inside an allocation? SLURM_JOB_ID says so.
bool is_in_allocation(const Environment& environment);

// Throws: not inside one, no Slurm here, Slurm too old for steps that share (before 20.11), or an answer that makes no
// sense.
Allocation find_allocation(const Environment& environment);

// When it ends by now: an administrator may have given it more time.
std::optional<std::chrono::system_clock::time_point> allocation_end(const std::string& job,
                                                                    const Environment& environment);

// Is it known to have ended? An answer that does not come says nothing.
bool is_allocation_over(const std::string& job, const Environment& environment);

// The names in a list such as "n[1-4]"; none if Slurm cannot read it.
std::vector<std::string> expand_node_list(const std::string& list, const Environment& environment);

// What `scontrol show job -d` says; brackets of node lists stay: "n[1-4]".
Allocation parse_allocation(const std::string& text);

}  // namespace dsat::host

#endif  // DSAT_HOST_SLURM_ALLOCATION_H_
