// Reads and keeps autotuning.num_gpus and autotuning.num_nodes. Anything but two positive integers counts as absent.
#include "dsat/config/world.h"

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "values.h"

namespace dsat::config {

std::optional<World> tuned_world(const Json& config) {
  const auto positive = [&](const char* key) -> std::optional<int64_t> {
    const Json* value = config.is_object() ? find(config, key) : nullptr;
    const std::optional<int64_t> number = value == nullptr ? std::nullopt : as_integer(*value);
    // No cluster is larger, and products stay within 64 bits.
    constexpr int64_t kMost = 1 << 20;
    return number && *number >= 1 && *number <= kMost ? number : std::nullopt;
  };
  const auto gpus = positive(kNumGpusKey), nodes = positive(kNumNodesKey);
  if (!gpus || !nodes) return std::nullopt;
  return World{*gpus, *nodes};
}

void keep_only_world(Json& config) {
  const std::optional<World> world = tuned_world(config);
  erase(config, "autotuning");
  if (world) config["autotuning"] = {{"num_gpus", world->num_gpus}, {"num_nodes", world->num_nodes}};
}

int64_t data_parallel_size_of(const Json& config, int64_t otherwise) {
  const std::optional<World> world = tuned_world(config);
  return world ? data_parallel_size(world->size(), config) : otherwise;
}

}  // namespace dsat::config
