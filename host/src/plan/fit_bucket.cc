// Compares the bytes of the configuration's reduce bucket with the device's memory, and gives the space sizes that fit.
// docs/real-deepspeed.md has the rule: one bucket, or two with overlap_comm at stages 1 and 2.
#include "plan/fit_bucket.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/hugging_face.h"
#include "dsat/config/json.h"
#include "dsat/cost/setup.h"

namespace dsat::host {
namespace {

constexpr const char* kBucketKey = "zero_optimization.reduce_bucket_size";
constexpr double kMostOfMemory = 0.25;

double bytes_per_element(const cost::Setup& setup) {
  const double element = setup.accumulation_dtype == cost::Precision::fp32 ? 4 : 2;
  return setup.overlap_comm && setup.stage != 3 ? 2 * element : element;
}

bool has_axis(const config::StageSpace& stage) {
  return std::any_of(stage.axes.begin(), stage.axes.end(), [](const auto& axis) { return axis.key == kBucketKey; });
}

// Returns the usual sizes up to this number of elements, and at least the smallest one.
std::vector<Json> sizes_up_to(double most_elements) {
  std::vector<Json> sizes;
  for (const int64_t size : config::usual_bucket_sizes()) {
    if (sizes.empty() || static_cast<double>(size) <= most_elements) sizes.emplace_back(size);
  }
  return sizes;
}

}  // namespace

std::optional<std::string> fit_bucket(Plan& plan) {
  const std::optional<uint64_t> memory =
      plan.device_memory_bytes ? plan.device_memory_bytes : plan.slots.device_memory_bytes;
  const bool listed = std::any_of(plan.space.stages.begin(), plan.space.stages.end(), has_axis);
  if (plan.default_axes || !memory || listed) return std::nullopt;
  const cost::Setup setup =
      cost::setup_from_config(with_precision(plan.base_config, plan.filled_in_precision()), plan.data_parallel_size);
  const double most_elements = kMostOfMemory * static_cast<double>(*memory) / bytes_per_element(setup);
  if (!setup.contiguous_gradients || setup.reduce_bucket_elements <= most_elements) return std::nullopt;
  const std::vector<Json> sizes = sizes_up_to(most_elements);
  bool read = false;
  for (config::StageSpace& stage : plan.space.stages) {
    if (stage.stage == 0) continue;  // stage 0 has no bucket
    stage.axes.push_back({kBucketKey, sizes});
    read = true;
  }
  if (!read) return std::nullopt;
  config::set(plan.base_config, kBucketKey, sizes.back());
  return fmt::format("{} {:.0f} takes {:.0f} MB of the {:.0f} MB of a device: it is tuned, too, from {} to {}",
                     kBucketKey, setup.reduce_bucket_elements,
                     setup.reduce_bucket_elements * bytes_per_element(setup) / 1e6, static_cast<double>(*memory) / 1e6,
                     sizes.front().dump(), sizes.back().dump());
}

std::optional<int64_t> replaced_bucket(const Plan& plan) {
  const Json* base = config::find(plan.base_config, kBucketKey);
  const Json* own = config::find(plan.user_config, kBucketKey);
  if (plan.default_axes || base == nullptr || !base->is_number() || (own != nullptr && own->is_array()))
    return std::nullopt;
  const bool given = own != nullptr && own->is_number();
  const int64_t elements = given ? own->get<int64_t>() : static_cast<int64_t>(cost::Setup().reduce_bucket_elements);
  return *base == elements ? std::nullopt : std::optional<int64_t>(elements);
}

}  // namespace dsat::host
