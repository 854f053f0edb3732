// A small scenario that tests bend to their purpose.
#ifndef DSAT_TESTS_HOST_SIM_SCENARIOS_H_
#define DSAT_TESTS_HOST_SIM_SCENARIOS_H_

#include "sim/scenario.h"

namespace dsat::host::sim {

// A GPT of 1.6e9 parameters on two nodes of eight devices with 80 GB.
inline Json example() {
  return {{"model", {{"layers", 48}, {"hidden", 1600}, {"heads", 25}, {"seq", 1024}, {"vocab", 50257}}},
          {"cluster",
           {{"nodes", 2},
            {"gpus_per_node", 8},
            {"device_memory", "80GB"},
            {"flops", 312e12},
            {"intra_node_bandwidth", 300e9},
            {"inter_node_bandwidth", 100e9}}}};
}

inline Scenario scenario(const Json& changes = Json::object()) {
  Json json = example();
  json.merge_patch(changes);
  return scenario_from_json(json, "cluster.json");
}

}  // namespace dsat::host::sim

#endif  // DSAT_TESTS_HOST_SIM_SCENARIOS_H_
