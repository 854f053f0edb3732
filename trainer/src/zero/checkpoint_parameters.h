// The parameters that a checkpoint is of: all of the model's, by name, whichever rank holds them.
//
// How a ZeRO stage groups and orders parameters, and how a pipeline is cut, is their own matter: a shard's ranges count
// in this table. Threading: one rank, one thread. Errors: PeerLost; dsat::Error in one line.
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

// Who saves and loads together. An engine is of one stage of a pipeline, or of the whole model: of the only stage.
struct CheckpointScope {
  Comm& ranks;  // of all stages, ranks of one stage being neighbours; every stage has as many
  int stage = 0;
  int stages = 1;
};

class CheckpointTable {
 public:
  // `layout`: of the parameters that this rank's stage has. Collective over the scope's ranks if there are stages.
  CheckpointTable(const Layout& layout, const CheckpointScope& scope);

  // Name and shape of each, sorted by name: what makes two models the same.
  const Json& described() const { return described_; }
  // The same ranges with a parameter's place in the table instead of its id.
  std::vector<OwnedRange> numbered(std::vector<OwnedRange> ranges) const;
  // Of those, without parameters of which an earlier stage has a copy: it saves them.
  std::vector<OwnedRange> to_save(const std::vector<OwnedRange>& ranges) const;

  // Throws unless `saved` describes the same parameters; `where` is the checkpoint.
  void check(const std::string& where, const Json& saved) const;

 private:
  Json described_ = Json::array();
  std::map<int64_t, int64_t> numbers_;     // by ParameterSlot::id
  std::set<int64_t> saved_by_an_earlier_;  // places in the table
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_CHECKPOINT_PARAMETERS_H_
