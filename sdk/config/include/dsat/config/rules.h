// What DeepSpeed accepts: keys, types and combinations.
#ifndef DSAT_CONFIG_RULES_H_
#define DSAT_CONFIG_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::config {

inline constexpr const char* kStageKey = "zero_optimization.stage";

// zero_optimization.stage; absent = 0. An Error for anything but 0 to 3 ("auto" = 0).
int zero_stage(const Json& config);

// "bf16.enabled"; "bfloat16.enabled", the older name, only where that section alone is there.
const char* bf16_key(const Json& config);

// data_types.grad_accum_dtype as "fp32", "fp16" or "bf16", by whichever of its names it is given; absent: nullopt.
std::optional<std::string> accumulation_dtype(const Json& config);

struct RuleOptions {
  int64_t min_micro_batch = 1;
  std::optional<int64_t> max_micro_batch;
  std::optional<int64_t> world_size;  // devices of a trial whose configuration names none (world.h)
  bool engine_is_deepspeed = true;    // false: an engine that need not refuse what only DeepSpeed's does
};

// The first validity rule that a merged configuration breaks, in one line that names rule and keys; nullopt: valid.
// No older switch stands beside what replaced it (cpu_offload beside offload_optimizer).
// Pipeline parallelism only with ZeRO 0 or 1; parameter offload only with ZeRO 3; optimizer offload
// (offload_optimizer.device other than none, or the older cpu_offload: true) only with ZeRO 1, 2 or 3; micro batch
// within bounds; bucket sizes positive, that of the all-gather even at ZeRO 1 and 2; at ZeRO 3 the sizes of
// hierarchical partitions divide the devices; a part of the optimizer offloaded only with ZeRO 3; fp16 and bf16 not
// both; without ZeRO gradients in fp32 with bf16 and in fp16 with fp16; and no elasticity, which chooses the batch.
// And none that DeepSpeed's engine refuses: with ZeRO amp, and optimizers that it was not tested with, unless they are
// allowed; at ZeRO 2 and 3 gradients that are scaled before a reduction by reduce_scatter, and at 3 quantized ones
// without it; nvme without its path.
std::optional<std::string> broken_rule(const Json& config, const RuleOptions& options = {});

// Why the user's own keys forbid a stage, as broken_rule says it; nullopt: allowed.
std::optional<std::string> forbids_stage(const Json& config, int stage, const RuleOptions& options = {});

// A key that DeepSpeed does not know, at any depth that DeepSpeed itself interprets.
struct UnknownKey {
  std::string key;           // dotted
  std::string suggestion;    // the known key that it is a misspelling of, dotted; empty: nothing is near
  bool stray_space = false;  // it is known if white space around it is dropped
  bool refused = false;      // it stands in a section where DeepSpeed refuses unknown keys; elsewhere it ignores them
  bool dotted = false;       // it is written with a dot, which DeepSpeed's keys have none of
};
std::vector<UnknownKey> unknown_keys(const Json& config);
// What is wrong with an unknown key, in one line; empty: it is the user's own.
std::string why_refused(const UnknownKey& unknown);

// The configuration as DeepSpeed reads it: in zero_optimization "yes" is true, 5e8 is 500000000 and
// prefetch_bucket_size is stage3_prefetch_bucket_size. A list is an axis, and each of its values is read so. A wrong
// type or a value out of range, which DeepSpeed itself refuses, is an Error that names the key.
Json canonical(const Json& config);

// A strategy's overrides of `base` as canonical() reads them. An Error names the first key that DeepSpeed never
// accepts, or that it would ignore: a misspelt or dotted one, a value that it refuses. Keys that `base` has are the
// user's own.
Json read_overrides(const Json& base, const Json& overrides);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_RULES_H_
