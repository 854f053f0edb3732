// DeepSpeed's rules: keys, types and combinations.
#ifndef DSAT_CONFIG_RULES_H_
#define DSAT_CONFIG_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/config/engine_version.h"
#include "dsat/error.h"

namespace dsat::config {

inline constexpr const char* kStageKey = "zero_optimization.stage";

// zero_optimization.stage; absent = 0. An Error for anything but 0 to 3 ("auto" = 0).
int zero_stage(const Json& config);

// "bf16.enabled", or the older "bfloat16.enabled" if the configuration has only that section.
const char* bf16_key(const Json& config);

// data_types.grad_accum_dtype under any of its names, as "fp32", "fp16" or "bf16". Absent: nullopt.
std::optional<std::string> accumulation_dtype(const Json& config);

struct RuleOptions {
  int64_t min_micro_batch = 1;
  std::optional<int64_t> max_micro_batch;
  std::optional<int64_t> world_size;  // devices of a trial whose configuration has no world (world.h)
  bool engine_is_deepspeed = true;    // false: rules of DeepSpeed's engine alone do not apply
  // Rules that versions do not share apply if the version is known.
  std::optional<EngineVersion> engine_version;
  bool on_processors = false;  // trials have no accelerator
};

// The first rule that a merged configuration breaks, in one line with rule and keys. nullopt: valid.
// - An older switch may not stand beside its replacement (cpu_offload beside offload_optimizer).
// - Pipeline parallelism needs ZeRO 0 or 1, parameter offload ZeRO 3, optimizer offload ZeRO 1 to 3, a partly offloaded
//   optimizer ZeRO 3.
// - The micro batch is within its bounds. Bucket sizes are positive, and even for the all-gather at ZeRO 1 and 2. At
//   ZeRO 3 the sizes of hierarchical partitions divide the devices.
// - fp16 and bf16 exclude each other. Without ZeRO, gradients are fp16 with fp16; with bf16 the version decides.
// - Elasticity is refused, because it chooses the batch.
// - DeepSpeed's engine refuses: amp with ZeRO; an optimizer that is untested with ZeRO, unless allowed; at ZeRO 2 and 3
//   gradients scaled before a reduction by reduce_scatter; at ZeRO 3 quantized gradients without
//   reduce_scatter; nvme without path; Muon with reduce_scatter at ZeRO 3 or with an offloaded optimizer, and
//   before 0.19.3 at ZeRO 1 and 2, where it trains wrongly; sums of gradients at ZeRO 3.
// - On processors it reduces no gradient at ZeRO 1 and 2 without contiguous_gradients.
std::optional<std::string> broken_rule(const Json& config, const RuleOptions& options = {});

// The reason why the user's own keys forbid a stage, as from broken_rule. nullopt: allowed.
std::optional<std::string> forbids_stage(const Json& config, int stage, const RuleOptions& options = {});

// A key that DeepSpeed does not know, at any depth that DeepSpeed interprets.
struct UnknownKey {
  std::string key;           // dotted
  std::string suggestion;    // the known key that was meant, dotted; empty: nothing is near
  bool stray_space = false;  // the key is known without the white space around it
  bool refused = false;      // DeepSpeed refuses unknown keys in this section; elsewhere it ignores them
  bool dotted = false;       // the key itself has a dot, unlike any key of DeepSpeed
  bool misspelt = false;     // the suggestion is surely meant: one slip away, absent, and with such a value
};
std::vector<UnknownKey> unknown_keys(const Json& config);
// The problem with an unknown key, in one line; empty: it is the user's own key. A user's configuration is refused for
// a misspelt key only, because a key that resembles another one may belong to somebody else.
std::string why_refused(const UnknownKey& unknown);

// The configuration as DeepSpeed reads it: in zero_optimization "yes" is true, 5e8 is 500000000 and
// prefetch_bucket_size is stage3_prefetch_bucket_size. A list is an axis; each of its values is read in this way. An
// Error names a key whose type or value DeepSpeed refuses.
Json canonical(const Json& config);

// Is "auto" a value of DeepSpeed's own at this dotted key? Elsewhere only Hugging Face's Trainer and accelerate replace
// it.
bool takes_auto(std::string_view key);

// A strategy's overrides of `base`, as canonical() reads them. An Error names the first key that DeepSpeed would refuse
// or ignore. Keys that `base` has are the user's own and allowed.
Json read_overrides(const Json& base, const Json& overrides);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_RULES_H_
