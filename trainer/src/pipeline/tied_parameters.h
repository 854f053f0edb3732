// Parameters that layers of different stages share: each stage has a copy, and all copies are updated alike.
//
// Copies begin with the same values and get the same gradient, the sum over the stages that hold them, so that they
// stay the same; in the norm of the gradients they count once. Ownership: owns the groups of ranks that share
// parameters. Threading: the compute thread; construction and sum_gradients() are collective over all ranks. Errors:
// PeerLost.
#ifndef DSAT_TRAINER_PIPELINE_TIED_PARAMETERS_H_
#define DSAT_TRAINER_PIPELINE_TIED_PARAMETERS_H_

#include <memory>
#include <vector>

#include "layout/pipeline_grid.h"
#include "model/layer_chain.h"
#include "zero/zero_engine.h"

namespace dsat::trainer {

class TiedParameters {
 public:
  // `stages`: the layers of each stage. Borrows `engine`, that of this rank's stage: its groups are the stage's layers.
  TiedParameters(const LayerChain& chain, const Segments& stages, const PipelineGrid& grid, Comm& world,
                 const ZeroEngine& engine);

  // Replaces this rank's gradients of shared parameters by their sums over the stages that share them. Call it before
  // they are summed over the data-parallel group.
  void sum_gradients();

  // The part of sum_of_squares(gradient_shard) that belongs to parameters which an earlier stage counts already.
  double squares_counted_elsewhere(const at::Tensor& gradient_shard, int data_parallel_rank) const;

 private:
  struct Tie {
    size_t layer;  // of the stage, from 0
    bool is_first_holder;
    std::unique_ptr<Comm> holders;  // of this pipeline
  };

  const ZeroEngine& engine_;
  std::vector<Tie> ties_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_TIED_PARAMETERS_H_
