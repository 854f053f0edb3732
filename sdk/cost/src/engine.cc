// The table of engines, and the parser of DeepSpeed's versions.
#include "dsat/cost/engine.h"

#include <array>
#include <charconv>

namespace dsat::cost {

const EngineRules& rules_of(Engine engine) {
  // The columns are whole_bucket, bucket_at_stage_1, one_bucket_stage_3, master_copy_in_fp32, gathers_by_layer,
  // allgather_copy, flat_bf16_gradients.
  static constexpr EngineRules kNewest{true, true, true, true, false, false, true};
  static constexpr EngineRules kBefore_0_12_4{true, true, true, true, false, true, true};
  static constexpr EngineRules kByLayer{false, false, false, false, true, false, false};
  switch (engine) {
    case Engine::deepspeed:
      return kNewest;
    case Engine::deepspeed_before_0_12_4:
      return kBefore_0_12_4;
    case Engine::by_layer:
      return kByLayer;
  }
  return kNewest;
}

Engine engine_of_deepspeed(std::string_view version) {
  std::array<int, 3> numbers{};
  const char* at = version.data();
  const char* const end = version.data() + version.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [after, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc()) return Engine::deepspeed;
    if (i + 1 < numbers.size() && (after == end || *after != '.')) return Engine::deepspeed;
    at = after + (after == end ? 0 : 1);
  }
  constexpr std::array<int, 3> kInPlace{0, 12, 4};
  return numbers < kInPlace ? Engine::deepspeed_before_0_12_4 : Engine::deepspeed;
}

}  // namespace dsat::cost
