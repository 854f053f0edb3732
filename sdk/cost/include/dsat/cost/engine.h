// The differences between training engines that matter for memory.
//
// Source: DeepSpeed's files by release, and measured runs; docs/real-deepspeed.md has both. dsat-trial works layer by
//   layer and reports its largest layer, which DeepSpeed does not. So a reported largest layer means dsat-trial.
// Threading: pure functions. Errors: none; an unreadable version counts as the newest.
#ifndef DSAT_COST_ENGINE_H_
#define DSAT_COST_ENGINE_H_

#include <string_view>

namespace dsat::cost {

enum class Engine {
  deepspeed,                // from 0.17.6 on
  deepspeed_before_0_17_6,  // bf16 without ZeRO has a separate optimizer
  deepspeed_before_0_12_4,  // the same, and gathers updated parameters through a bucket
  by_layer,                 // dsat-trial
};

struct EngineRules {
  bool whole_bucket;         // the reduce bucket always has its full size; else at most the model's
  bool bucket_at_stage_1;    // else stage 1 reduces gradients in place
  bool one_bucket_stage_3;   // with overlap_comm too
  bool master_copy_in_fp32;  // at stages 1 to 3, even if the parameters are fp32
  bool gathers_by_layer;  // stage 3 holds the largest layer, the parameters that its keys keep, and frozen ones whole
  bool allgather_copy;    // stages 1 and 2 gather through allgather_bucket_size elements
  bool flat_bf16_gradients;  // a separate optimizer for bf16 at stages 0 and 1 with fp32 gradients
  bool flat_at_stage_0;      // the same for bf16 at stage 0 with any gradients
};

const EngineRules& rules_of(Engine engine);
// The engine of a DeepSpeed version: "0.14.5", "0.12.3+git".
Engine engine_of_deepspeed(std::string_view version);

}  // namespace dsat::cost

#endif  // DSAT_COST_ENGINE_H_
