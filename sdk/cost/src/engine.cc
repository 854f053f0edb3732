// The table of engines.
#include "dsat/cost/engine.h"

#include <optional>

#include "dsat/config/engine_version.h"

namespace dsat::cost {

const EngineRules& rules_of(Engine engine) {
  // The columns are whole_bucket, bucket_at_stage_1, one_bucket_stage_3, master_copy_in_fp32, gathers_by_layer,
  // allgather_copy, flat_bf16_gradients, flat_at_stage_0.
  static constexpr EngineRules kNewest{true, true, true, true, false, false, true, false};
  static constexpr EngineRules kBefore_0_17_6{true, true, true, true, false, false, true, true};
  static constexpr EngineRules kBefore_0_12_4{true, true, true, true, false, true, true, true};
  static constexpr EngineRules kByLayer{false, false, false, false, true, false, false, false};
  switch (engine) {
    case Engine::deepspeed:
      return kNewest;
    case Engine::deepspeed_before_0_17_6:
      return kBefore_0_17_6;
    case Engine::deepspeed_before_0_12_4:
      return kBefore_0_12_4;
    case Engine::by_layer:
      return kByLayer;
  }
  return kNewest;
}

Engine engine_of_deepspeed(std::string_view text) {
  const std::optional<config::EngineVersion> version = config::parse_engine_version(text);
  if (!version) return Engine::deepspeed;
  if (*version < config::EngineVersion{0, 12, 4}) return Engine::deepspeed_before_0_12_4;
  return *version < config::EngineVersion{0, 17, 6} ? Engine::deepspeed_before_0_17_6 : Engine::deepspeed;
}

}  // namespace dsat::cost
