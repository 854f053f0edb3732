// Where this process stands in a group of ranks, by --ranks and the environment of torchrun and its kin; and whether
// the shell that started it leaves it room.
//
// Errors: dsat::Error that names the variable, or the limit.
#ifndef DSAT_TRAINER_SETTINGS_ENVIRONMENT_H_
#define DSAT_TRAINER_SETTINGS_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace dsat::trainer {

struct Group {
  int world_size = 1;
  std::optional<int> rank;  // given: a launcher elsewhere has started this one rank
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
};

// `ranks`: of --ranks, 0 = not given. A RANK in the environment decides; then --ranks must agree with WORLD_SIZE.
Group find_group(int64_t ranks);

// On its machine: LOCAL_RANK where another launcher has started this rank, else the rank itself.
int local_rank_of(int rank);

// Where a limit on the process's address space (ulimit -v) leaves too little for a rank's threads, LibTorch and
// OpenBLAS abort or hang. Bytes; nullopt: no limit. The first asks about this process.
void require_address_space();
void require_address_space(std::optional<uint64_t> limit_bytes, uint64_t mapped_bytes);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_ENVIRONMENT_H_
