// A configuration as JSON: parsed, walked, merged over another, identified, checked by DeepSpeed's rules.
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  fuzz::may_refuse([&] {
    const Json json = config::parse(fuzz::text_of(data, size), "ds_config.json");
    Json merged{{"zero_optimization", {{"stage", 1}}}, {"train_batch_size", 8}};
    config::overwrite(merged, json);
    const std::string identity = config::identity(merged);
    if (config::identity(config::parse(identity, "identity")) != identity) __builtin_trap();
    config::find(json, "zero_optimization.stage");
    config::unknown_keys(json);
    fuzz::may_refuse([&] { config::set(merged, "zero_optimization.stage", 2); });
    fuzz::may_refuse([&] { config::zero_stage(merged); });
  });
  return 0;
}
