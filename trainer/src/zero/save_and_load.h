// Checkpoints of a training: saved by all ranks, each its share; loaded at any number of ranks, any ZeRO stage and any
// number of pipeline stages.
//
//     DIR/latest                  the tag of the newest one; written last
//     DIR/TAG/checkpoint.json     model, counts, client state; rank 0's
//     DIR/TAG/rank_00000.ckpt     one a rank, see checkpoint_shard.h; in a pipeline stage_000_rank_00000.ckpt, with the
//                                 data-parallel rank
//
// Values are stored by parameter and range, in fp32, so a loader picks out what it holds itself. Parameters in bf16 are
// their rounded master copy and are not stored a second time.
// Threading: one rank, one thread; all functions are collective. Errors: dsat::Error in one line, PeerLost on ranks
// that only another one's error stops. On an error nothing has changed, neither on disk nor in the optimizer.
#ifndef DSAT_TRAINER_ZERO_SAVE_AND_LOAD_H_
#define DSAT_TRAINER_ZERO_SAVE_AND_LOAD_H_

#include <string>
#include <vector>

#include "files/checkpoint_shard.h"
#include "zero/checkpoint_parameters.h"
#include "zero/sharded_optimizer.h"

namespace dsat::trainer {

// What is saved and loaded. Borrowed.
struct Checkpointed {
  const ZeroContext& context;
  ShardedOptimizer& optimizer;
  // Each rank's own, like the buffers of its module; at another number of ranks the one of rank mod old number, ranks
  // of the same stage.
  std::vector<Blob> blobs;
  CheckpointScope scope;
};

// Atomic: DIR/TAG appears whole, or stays what it was. DIR is made if needed. `client_state` is rank 0's.
void save_checkpoint(const Checkpointed& what, const std::string& dir, const std::string& tag,
                     const Json& client_state);

// `tag` empty: the one that DIR/latest names. Returns the client state. The random generator of LibTorch goes on where
// it was if the numbers of ranks and stages are the same. Afterwards each rank has its own shard; whoever holds other
// ranks' parameters as well has to fetch them.
Json load_checkpoint(const Checkpointed& what, const std::string& dir, const std::string& tag = "");

// For trainings whose tags are stepN: names the last one in DIR/latest again if that has been lost. The tag; "": there
// was nothing to mend. Not collective.
std::string mend_latest(const std::string& dir);

// Whether DIR has a checkpoint to go on from.
bool has_checkpoint(const std::string& dir);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_SAVE_AND_LOAD_H_
