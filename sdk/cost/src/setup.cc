// Reads the keys of a DeepSpeed configuration that decide memory. Absent keys have the engine's defaults. "auto" has
// the value that another program fills in.
#include "dsat/cost/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"

namespace dsat::cost {
namespace {

using config::find;

// DeepSpeed leaves "auto" to its caller (Hugging Face fills it in), so here it counts as absent.
const Json* find_set(const Json& config, std::string_view key) {
  const Json* value = find(config, key);
  if (value == nullptr || value->is_null() || (value->is_string() && value->get<std::string>() == "auto"))
    return nullptr;
  return value;
}

[[noreturn]] void wrong(std::string_view key, const Json& value, const char* wanted) {
  throw Error(fmt::format("{} is {}; write {}", key, value.dump(), wanted));
}

bool flag(const Json& config, std::string_view key, bool absent) {
  const Json* value = find_set(config, key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) wrong(key, *value, "true or false");
  return value->get<bool>();
}

double number(const Json& config, std::string_view key, double absent) {
  const Json* value = find_set(config, key);
  if (value == nullptr) return absent;
  if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < 0) {
    wrong(key, *value, "a number that is not negative");
  }
  return value->get<double>();
}

// Elements of a bucket. For "auto" Hugging Face fills in the square of the hidden size, which is unknown here. That is
// some tens of megabytes against DeepSpeed's gigabyte, so it counts as 0, and `fixed` absorbs it.
double bucket(const Json& config, std::string_view key, double absent) {
  const Json* value = find(config, key);
  return value != nullptr && *value == "auto" ? 0 : number(config, key, absent);
}

int64_t count(const Json& config, std::string_view key) {
  const Json* value = find_set(config, key);
  if (value == nullptr) return 1;
  const double number = value->is_number() ? value->get<double>() : 0;
  if (!(number >= 1 && number <= 1e9) || number != std::floor(number)) wrong(key, *value, "a whole number from 1 on");
  return static_cast<int64_t>(number);
}

std::string text(const Json& config, std::string_view key) {
  const Json* value = find_set(config, key);
  if (value == nullptr) return "";
  if (!value->is_string()) wrong(key, *value, "a string");
  std::string lower = value->get<std::string>();
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

Precision precision_of(const Json& config) {
  if (flag(config, config::bf16_key(config), false)) return Precision::bf16;
  return flag(config, "fp16.enabled", false) ? Precision::fp16 : Precision::fp32;
}

Precision accumulation_dtype_of(const Json& config, Precision absent) {
  const std::optional<std::string> name = config::accumulation_dtype(config);
  if (!name) return absent;
  return *name == "fp32" ? Precision::fp32 : *name == "fp16" ? Precision::fp16 : Precision::bf16;
}

// The optimizer by its number of states per parameter. An unknown one counts as Adam, which keeps the most, so an error
// is on the safe side.
Optimizer optimizer_of(const Json& config) {
  const std::string name = text(config, "optimizer.type");
  if (name == "sgd") {
    return number(config, "optimizer.params.momentum", 0) > 0 ? Optimizer::sgd_momentum : Optimizer::sgd;
  }
  for (const char* one_state : {"lion", "fusedlion", "adagrad", "rmsprop", "signum"}) {
    if (name == one_state) return Optimizer::sgd_momentum;
  }
  return Optimizer::adam;
}

Device device_of(const Json& config, const char* section, std::initializer_list<const char*> older_flags) {
  const std::string key = std::string("zero_optimization.") + section + ".device";
  const std::string name = text(config, key);
  if (name == "cpu" || name == "nvme") return Device::host;
  if (!name.empty() && name != "none") wrong(key, *find(config, key), "cpu, nvme or none");
  const bool is_on_host = std::any_of(older_flags.begin(), older_flags.end(), [&](const char* older) {
    return flag(config, std::string("zero_optimization.") + older, false);
  });
  return is_on_host ? Device::host : Device::accelerator;
}

// For stage 3: MiCS shares the states within smaller groups, hpZ keeps a second copy of the parameters within such a
// group, and a part of the optimizer may stay on the device.
void read_partitions(const Json& config, Setup& setup) {
  const auto size = [&](const char* key) {
    const Json* value = find_set(config, key);
    return value == nullptr || !value->is_number_integer() ? int64_t{0} : value->get<int64_t>();
  };
  const int64_t ranks = setup.data_parallel_size;
  const int64_t mics = size("zero_optimization.mics_shard_size");
  if (mics >= 1) setup.data_parallel_size = std::min(mics, ranks);
  setup.hierarchical_partition =
      std::clamp<int64_t>(size("zero_optimization.zero_hpz_partition_size"), 1, setup.data_parallel_size);
  setup.offload_ratio = std::min(1.0, number(config, "zero_optimization.offload_optimizer.ratio", 1));
  if (setup.offload_ratio == 1) return;
  setup.sub_group_elements = number(config, "zero_optimization.sub_group_size", setup.sub_group_elements);
}

// The parameters that stage 3 keeps gathered. A layer-by-layer engine keeps none unless a key asks for it. If only the
// bound of live parameters is given, it keeps every parameter that is used again, up to the bound.
void read_gathering(const Json& config, const EngineRules& rules, Setup& setup) {
  constexpr const char* kPrefetch = "zero_optimization.stage3_prefetch_bucket_size";
  constexpr const char* kReuse = "zero_optimization.stage3_max_reuse_distance";
  if (!rules.gathers_by_layer) {
    setup.prefetch_bucket_elements = bucket(config, kPrefetch, setup.prefetch_bucket_elements);
    setup.max_reuse_distance_elements = number(config, kReuse, setup.max_reuse_distance_elements);
    return;
  }
  constexpr double kNoBound = std::numeric_limits<double>::infinity();
  const double live = number(config, "zero_optimization.stage3_max_live_parameters", 0);
  if (live > 0) setup.max_live_elements = live;
  setup.prefetch_bucket_elements = bucket(config, kPrefetch, 0);
  setup.max_reuse_distance_elements = number(config, kReuse, live > 0 ? kNoBound : 0);
  setup.persistence_threshold_elements = bucket(config, "zero_optimization.stage3_param_persistence_threshold", 0);
  setup.max_persistent_elements =
      number(config, "zero_optimization.stage3_model_persistence_threshold", setup.max_persistent_elements);
}

// As in DeepSpeed, a number of checkpoints that is false or 0 means none.
bool checkpoints_activations(const Json& config) {
  const Json* number = find_set(config, "activation_checkpointing.number_checkpoints");
  return flag(config, "activation_checkpointing.partition_activations", false) ||
         flag(config, "activation_checkpointing.cpu_checkpointing", false) ||
         (number != nullptr && *number != false && *number != 0);
}

}  // namespace

Setup setup_from_config(const Json& config, int64_t data_parallel_size, Engine engine) {
  if (!config.is_object()) throw Error("configuration: it is not a JSON object; write {\"zero_optimization\": ...}");
  if (data_parallel_size < 1) {
    throw Error(fmt::format("data-parallel size is {}; it must be at least 1", data_parallel_size));
  }
  data_parallel_size = config::data_parallel_size_of(config, data_parallel_size);
  Setup setup;
  setup.stage = config::zero_stage(config);
  setup.precision = precision_of(config);
  setup.accumulation_dtype = accumulation_dtype_of(config, setup.precision);
  setup.optimizer = optimizer_of(config);
  if (setup.precision == Precision::bf16) {
    setup.half_master_copy = flag(config, "bf16.bf16_master_weights_and_grads", false);
    setup.half_states = flag(config, "bf16.bf16_optimizer_states", false);
  }
  setup.optimizer_device = device_of(config, "offload_optimizer", {"cpu_offload"});
  setup.parameter_device = device_of(config, "offload_param", {"cpu_offload_param", "cpu_offload_params"});
  const config::TensorParallelism tensor = config::tensor_parallelism(config);
  setup.tensor_parallel_size = tensor.size;
  // Ranks that share a sample's sequence also share the states. Ranks of other parts of a layer do not.
  const int64_t ranks = data_parallel_size * count(config, config::kSequenceParallelKey);
  setup.data_parallel_size = tensor.divides_batch ? ranks : std::max<int64_t>(1, ranks / tensor.size);
  if (setup.stage == 3) read_partitions(config, setup);
  setup.pipeline_stages = count(config, "pipeline.stages");
  setup.activation_checkpointing = checkpoints_activations(config);
  const double reduce_bucket = rules_of(engine).gathers_by_layer && setup.stage >= 2 ? 0 : setup.reduce_bucket_elements;
  setup.reduce_bucket_elements = bucket(config, "zero_optimization.reduce_bucket_size", reduce_bucket);
  setup.allgather_bucket_elements =
      bucket(config, "zero_optimization.allgather_bucket_size", setup.allgather_bucket_elements);
  read_gathering(config, rules_of(engine), setup);
  // An offloaded optimizer at stage 1 or 2 needs contiguous gradients.
  setup.contiguous_gradients = (setup.optimizer_device == Device::host && setup.stage < 3) ||
                               flag(config, "zero_optimization.contiguous_gradients", true);
  // DeepSpeed overlaps by default at stage 3 only.
  setup.overlap_comm = flag(config, "zero_optimization.overlap_comm", setup.stage == 3);
  // The micro batch alone decides memory. A strategy changes it and leaves the base's train batch, so the other batch
  // sizes are read only if it is absent.
  const config::GivenBatchSizes given = config::read_batch_sizes(config);
  setup.micro_batch =
      given.micro_batch ? *given.micro_batch : config::complete_batch_sizes(given, data_parallel_size).micro_batch;
  return setup;
}

}  // namespace dsat::cost
