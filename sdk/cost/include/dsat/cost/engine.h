// The engines that train, as far as they allocate differently: one row each.
//
// Source: DeepSpeed's own files by release, and measured runs; docs/real-deepspeed.md has both. dsat-trial works layer
//   by layer and reports the largest layer. DeepSpeed does not report it: that distinguishes the two.
// Threading: pure functions. Errors: none; a version that cannot be read counts as the newest.
#ifndef DSAT_COST_ENGINE_H_
#define DSAT_COST_ENGINE_H_

#include <string_view>

namespace dsat::cost {

enum class Engine {
  deepspeed,                // from 0.12.4 on
  deepspeed_before_0_12_4,  // gathers updated parameters through a bucket
  by_layer,                 // dsat-trial
};

struct EngineRules {
  bool whole_bucket;         // the reduce bucket has its full size whatever the model's; else at most the model's
  bool bucket_at_stage_1;    // else gradients are reduced in place there
  bool one_bucket_stage_3;   // with overlap_comm too
  bool master_copy_in_fp32;  // at stages 1 to 3, where the parameters themselves are fp32 already
  bool gathers_by_layer;     // stage 3 holds the largest layer, and what its keys ask for; frozen parameters whole
  bool allgather_copy;       // stages 1 and 2 gather through allgather_bucket_size elements
  bool flat_bf16_gradients;  // bf16 at stage 0, and at stage 1 with fp32 gradients, has an optimizer of its own
};

const EngineRules& rules_of(Engine engine);
// "0.14.5", also "0.12.3+git": of DeepSpeed.
Engine engine_of_deepspeed(std::string_view version);

}  // namespace dsat::cost

#endif  // DSAT_COST_ENGINE_H_
