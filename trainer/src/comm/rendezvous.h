// Where the ranks of a training meet, and the groups that join() is made of.
//
// Ownership: a group that is put on top of another one owns it. Threading: join() once in a process. Errors: PeerLost
// where another rank is gone; dsat::Error.
#ifndef DSAT_TRAINER_COMM_RENDEZVOUS_H_
#define DSAT_TRAINER_COMM_RENDEZVOUS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/trainer/comm.h"
#include "watch/peer_watch.h"

namespace dsat::trainer {

class SharedRegion;

struct Rendezvous {
  int rank = 0;
  int world_size = 1;
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  // For a rank that no launcher of ours has started: it watches over the other ranks, and this is called with the cause
  // when one of them fails. Empty: our launcher watches.
  PeerWatch::End on_cause_of_others = {};
};

// Joins the group; blocks until all ranks have. One rank alone needs no transport. Ranks that launch() has started
// share memory, others talk over Gloo alone; what lies on a `device` other than the CPU goes over NCCL, if each rank
// has a CUDA device of its own, else through the host's memory.
std::unique_ptr<Comm> join(const Rendezvous& rendezvous, at::Device device = at::kCPU);
std::unique_ptr<Comm> join_gloo(const Rendezvous& rendezvous);
// How many ranks of the group compute on this one's CUDA device. Collective.
int ranks_on_device(Comm& comm, at::Device device);
// The group of this rank alone.
std::unique_ptr<Comm> single_rank_comm();
// The same group, with its blocking operations through the region if that has a place left. `members`: the ranks'
// numbers at the launcher. Collective.
std::unique_ptr<Comm> through_shared_memory(std::unique_ptr<Comm> comm, SharedRegion& region, std::vector<int> members);
// The same group for tensors of any device: what does not lie on the host is staged through its memory.
std::unique_ptr<Comm> through_host_memory(std::unique_ptr<Comm> comm);

// PeerWatch::wait_for_cause() and leave() of this process's watch over the others; nothing happens where there is none.
void wait_for_cause();
void leave_others(const std::optional<Cause>& own);

// The position of `rank` in `ranks`, a list of different ranks below `size`; dsat::Error otherwise.
int position_in(const std::vector<int>& ranks, int rank, int size);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_RENDEZVOUS_H_
