// A trial's loaders as the training uses them: checked, and sharded for this rank.
//
// Threading: one rank, one thread. Errors: dsat::Error, one line.
#ifndef DSAT_TRAINER_TRIAL_TRIAL_DATA_H_
#define DSAT_TRAINER_TRIAL_TRIAL_DATA_H_

#include <memory>
#include <string>

#include "dsat/trainer/context.h"

namespace dsat::trainer {

struct TrialData {
  std::shared_ptr<Loader> loader;  // null: this rank builds none
  Shard shard;
  int64_t length = 0;  // micro batches in a pass; the same on every rank

  BatchIterator iterator(bool repeat, int64_t first = 0) const {
    return loader ? BatchIterator(*loader, shard, repeat, first) : BatchIterator();
  }
};

// Collective. `built`: what the method `name` gave; null on ranks that build none. `training`: micro batches must be
// the engine's.
TrialData prepare_data(TrialContext& context, std::shared_ptr<Loader> built, const std::string& name, bool training);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_TRIAL_DATA_H_
