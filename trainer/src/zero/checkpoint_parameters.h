// The parameters that a checkpoint is of: all of the model's, by name, whichever rank holds them.
//
// A checkpoint does not depend on how a ZeRO stage groups and orders parameters, nor on how a pipeline is cut: the
// ranges of a saved shard name a parameter by its place in this table, which is sorted by name. Ownership: a value.
// Threading: the compute thread. Errors: PeerLost; dsat::Error in one line.
#ifndef DSAT_TRAINER_ZERO_CHECKPOINT_PARAMETERS_H_
#define DSAT_TRAINER_ZERO_CHECKPOINT_PARAMETERS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/trainer/comm.h"
#include "layout/layout.h"
#include "layout/owned_ranges.h"

namespace dsat::trainer {

// The ranks that save and load together. An engine holds one stage of a pipeline; without a pipeline the whole model is
// the only stage.
struct CheckpointScope {
  Comm& ranks;  // those of all stages; ranks of a stage are neighbours, and every stage has as many. Borrowed
  int stage = 0;
  int stages = 1;
};

class CheckpointParameters {
 public:
  // `layout`: the parameters of this rank's stage. Collective over the scope's ranks if there are stages.
  CheckpointParameters(const Layout& layout, const CheckpointScope& scope);

  // Name and shape of each, sorted by name: what makes two models the same.
  const Json& described() const { return described_; }
  // The same ranges, with a parameter's place in the table instead of its id.
  std::vector<OwnedRange> numbered(std::vector<OwnedRange> ranges) const;
  // numbered(), without the parameters of which an earlier stage has a copy (tied layers): that stage saves them.
  std::vector<OwnedRange> to_save(const std::vector<OwnedRange>& ranges) const;

  // Throws unless `saved` describes the same parameters; `where` is the checkpoint.
  void check(const std::string& where, const Json& saved) const;

 private:
  Json described_ = Json::array();
  std::map<int64_t, int64_t> places_;      // by ParameterSlot::id
  std::set<int64_t> saved_by_an_earlier_;  // places in the table
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_CHECKPOINT_PARAMETERS_H_
