// The tuning space: which keys may take which values, by ZeRO stage.
//
// Sources: Determined's default space, lists in the user's configuration (a list where DeepSpeed wants a scalar is an
// axis), and a space file. Errors: dsat::Error.
#ifndef DSAT_CONFIG_SPACE_H_
#define DSAT_CONFIG_SPACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/config/conditions.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"
#include "dsat/error.h"

namespace dsat::config {

struct Axis {
  std::string key;           // dotted
  std::vector<Json> values;  // at least one, all different
};

struct StageSpace {
  int stage = 0;
  std::vector<Axis> axes;  // all keys but stage and micro batch, in a fixed order
};

struct Space {
  int64_t min_micro_batch = 1;
  std::optional<int64_t> max_micro_batch;
  // With --global-batch N: N / data-parallel size. Only its divisors are legal micro batches.
  std::optional<int64_t> micro_batch_divides;
  std::vector<StageSpace> stages;     // ascending
  std::vector<Condition> conditions;  // that a configuration of several axes may break
  const StageSpace* stage(int stage) const;
  bool allows_micro_batch(int64_t micro_batch) const;
};

struct SpaceRequest {
  std::vector<int> stages;                        // wanted stages
  Json user_config;                               // lists are axes
  std::string config_name = "the configuration";  // for messages
  Json space_file;  // null, or {"zero_optimization.stage3_prefetch_bucket_size": [..], ...}: a key's values,
                    // or {"stages": [3], "values": [..]} for some stages only, with a range or conditions
  std::string space_name = "the space file";  // for messages
  RuleOptions rules;
  std::optional<int64_t> global_batch;
  int64_t dp_size = 1;       // of every trial; a common multiple if trials differ
  bool default_axes = true;  // false: only stage, micro batch and the user's lists are tuned
  // The axes of the world: GPUs of a node, and nodes. Both lists are given, or none if all trials are alike.
  std::vector<int> num_gpus{}, num_nodes{};
  // The world of a trial if all trials have the same. A list of pipeline.stages divides it, and the base configuration
  // names it (dsat/config/world.h).
  World world{};
};

struct SpaceResult {
  Space space;
  Json base_config;                  // user_config; each list replaced by its first value that its stage allows
  std::vector<std::string> notices;  // stages that the user's keys forbid, and the reasons
};

// The space of a study. An Error names rule and keys if no stage or no micro batch is left. The default space also
// tunes keys that the user's configuration sets to a scalar. A list or a space-file entry replaces the default axis of
// its key.
SpaceResult build_space(const SpaceRequest& request);

// Is a list at this dotted key an axis? Only where DeepSpeed wants a scalar: a list among the parameters of an
// optimizer is a value.
bool lists_are_axes(std::string_view key);

// The values of the default axis of reduce_bucket_size, in elements, ascending.
std::vector<int64_t> usual_bucket_sizes();

Json to_json(const Space& space);
Space space_from_json(const Json& json);

// The overrides of one point: {"zero_optimization": {"stage": s, ...}, "train_micro_batch_size_per_gpu": m}.
// choice[i] is an index into stage.axes[i].values.
Json overrides(const StageSpace& stage, const std::vector<size_t>& choice, int64_t micro_batch);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SPACE_H_
