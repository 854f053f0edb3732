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
// Ownership: everything is borrowed. Threading: the compute thread; functions are collective unless they say otherwise.
// Errors: dsat::Error in one line; PeerLost on ranks that only another rank's error stops. On an error nothing has
// changed, neither on disk nor in the optimizer.
#ifndef DSAT_TRAINER_ZERO_SAVE_AND_LOAD_H_
#define DSAT_TRAINER_ZERO_SAVE_AND_LOAD_H_

#include <map>
#include <string>
#include <vector>

#include "files/checkpoint_shard.h"
#include "weights/weight_spec.h"
#include "zero/checkpoint_parameters.h"
#include "zero/sharded_optimizer.h"

namespace dsat::trainer {

// What is saved and loaded. Borrowed.
struct CheckpointContents {
  const ZeroContext& context;
  ShardedOptimizer& optimizer;
  // What each rank has of its own, like the buffers of its module. At another number of ranks, rank r loads those of
  // rank r modulo the old number; ranks are counted within a stage.
  std::vector<Blob> blobs;
  // For other programs: the tensors among the blobs, and a tied parameter's further names.
  std::vector<WeightSpec> buffers;
  std::map<std::string, std::string> aliases;
  CheckpointScope scope;
};

// Atomic: DIR/TAG appears whole, or stays what it was. DIR is made if needed. `client_state` is rank 0's.
void save_checkpoint(const CheckpointContents& what, const std::string& dir, const std::string& tag,
                     const Json& client_state);

// `tag` empty: the one that DIR/latest names. Returns the client state. LibTorch's random generators go on where they
// were if the numbers of ranks and stages are the same. Afterwards each rank has its own shard: the caller must gather
// the other ranks' parameters where it holds them (Parameters::publish).
Json load_checkpoint(const CheckpointContents& what, const std::string& dir, const std::string& tag = "");

// For trainings whose tags are stepN: writes DIR/latest again if it has been lost, with the last tag that is there.
// Returns that tag; "": there was nothing to repair. Not collective.
std::string repair_latest(const std::string& dir);

// Whether DIR has a checkpoint to go on from. Not collective.
bool has_checkpoint(const std::string& dir);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_SAVE_AND_LOAD_H_
