// A scenario of the simulator, and one answer of it.

#include "dsat/config/json.h"
#include "fuzz/fuzz_target.h"
#include "sim/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  fuzz::may_refuse([&] {
    const Json json = config::parse(fuzz::text_of(data, size), "scenario.json");
    if (!json.is_object()) return;  // as load_input refuses it
    host::sim::ClusterSurface surface(host::sim::scenario_from_json(json, "scenario.json"));
    const Json config{
        {"train_batch_size", 8}, {"train_micro_batch_size_per_gpu", 1}, {"gradient_accumulation_steps", 1}};
    surface.run(host::SimulatedTrial{config});
  });
  return 0;
}
