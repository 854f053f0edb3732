// The order in which the stages of a pipeline work on the micro batches of one optimizer step.
//
// One forward, one backward (1F1B; Narayanan et al., "PipeDream", 2019, in its flushed form): a stage runs ahead by as
// many forwards as there are stages behind it, then alternates, then drains. It holds the activations of at most
// num_stages - stage micro batches, however many there are.
// Threading: pure functions. Errors: none; arguments as documented.
#ifndef DSAT_TRAINER_LAYOUT_PIPELINE_SCHEDULE_H_
#define DSAT_TRAINER_LAYOUT_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace dsat::trainer {

enum class PipelineAction {
  receive_activation,  // from the stage before
  forward,
  send_activation,   // to the stage after
  receive_gradient,  // of the activation that was sent, from the stage after
  backward,
  send_gradient  // of the activation that was received, to the stage before
};

struct PipelineInstruction {
  PipelineAction action;
  int64_t micro_batch;  // from 0
};

// What `stage` (from 0) of `num_stages` does for `micro_batches` >= 1. Sends may block until their receiver is there:
// where two neighbours exchange tensors both ways, the stage with an even number sends first and the odd one receives
// first.
std::vector<PipelineInstruction> training_schedule(int stage, int num_stages, int64_t micro_batches);

// Forward only: nothing is kept.
std::vector<PipelineInstruction> evaluation_schedule(int stage, int num_stages, int64_t micro_batches);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_PIPELINE_SCHEDULE_H_
