// A table by stage, and prefixes of keys.
#include "default_axes.h"

#include <array>

#include "dsat/base/affix.h"

namespace dsat::config {
namespace {

constexpr std::array<int64_t, 8> kBucketSizes = {1'000'000,   5'000'000,   10'000'000,    50'000'000,
                                                 100'000'000, 500'000'000, 1'000'000'000, 5'000'000'000};

}  // namespace

// A stage also has the axes of every lower one. Only keys that DeepSpeed reads are tuned: allgather_bucket_size has
// no effect from 0.12.4 on, and allgather_partitions never had one (docs/real-deepspeed.md).
std::vector<Axis> default_axes(int stage) {
  const std::vector<Json> buckets(kBucketSizes.begin(), kBucketSizes.end());
  const std::vector<Json> flags = {true, false};
  std::vector<Axis> axes;
  if (stage >= 1) {
    axes.push_back({"zero_optimization.reduce_bucket_size", buckets});
  }
  if (stage >= 2) {
    axes.push_back({"zero_optimization.overlap_comm", flags});
    axes.push_back({"zero_optimization.reduce_scatter", flags});
    axes.push_back({kContiguousKey, flags});
  }
  if (stage >= 3) {
    axes.push_back({"zero_optimization.stage3_prefetch_bucket_size", {5'000'000, 50'000'000, 500'000'000}});
    axes.push_back({"zero_optimization.stage3_param_persistence_threshold", {100'000, 1'000'000}});
    axes.push_back({"zero_optimization.stage3_max_reuse_distance", {100'000'000, 1'000'000'000}});
    axes.push_back({"zero_optimization.sub_group_size", {100'000'000, 1'000'000'000}});
  }
  return axes;
}

bool switches_offload(const std::string& key) {
  return ends_with(key, "offload_param.device") || ends_with(key, "offload_optimizer.device") ||
         starts_with(key, "zero_optimization.cpu_offload");
}

int lowest_stage(const std::string& key) {
  if (!starts_with(key, "zero_optimization.") || switches_offload(key)) return 0;
  const bool stage_3_only =
      starts_with(key, "zero_optimization.stage3_") || starts_with(key, "zero_optimization.offload_param.") ||
      starts_with(key, "zero_optimization.mics_") || starts_with(key, "zero_optimization.zero_") ||
      key == "zero_optimization.offload_optimizer.ratio" || key == "zero_optimization.sub_group_size";
  return stage_3_only ? 3 : 1;
}

std::vector<int64_t> usual_bucket_sizes() { return {kBucketSizes.begin(), kBucketSizes.end()}; }

}  // namespace dsat::config
