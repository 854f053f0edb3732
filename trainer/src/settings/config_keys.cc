// The lists of keys that dsat-trial obeys, ignores with a warning, or refuses.
// A key in no list is named in a warning: a typing mistake is not passed over.
#include "settings/config_keys.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/config_reader.h"
#include "dsat/base/spelling.h"
#include "dsat/config/batch.h"
#include "dsat/config/rules.h"

namespace dsat::trainer {
namespace {

// What settings.cc reads.
const std::set<std::string>& obeyed() {
  static const std::set<std::string> keys = {"train_batch_size",
                                             "train_micro_batch_size_per_gpu",
                                             "gradient_accumulation_steps",
                                             "zero_optimization",
                                             "optimizer",
                                             "scheduler",
                                             "gradient_clipping",
                                             "bf16",
                                             "bfloat16",
                                             "fp16",
                                             "autotuning",
                                             "activation_checkpointing",
                                             "data_types",
                                             "amp",
                                             "pipeline",
                                             "tensor_parallel",
                                             "autotp_size"};
  return keys;
}

// What says nothing about the training itself (logging, monitoring, checkpoints to disk), or asks for what holds here
// anyway: gradients are summed in fp32 whatever the division's place.
const std::set<std::string>& harmless() {
  static const std::set<std::string> keys = {"steps_per_print",
                                             "log_level",
                                             "wall_clock_breakdown",
                                             "dump_state",
                                             "memory_breakdown",
                                             "tensorboard",
                                             "wandb",
                                             "comet",
                                             "csv_monitor",
                                             "comms_logger",
                                             "flops_profiler",
                                             "checkpoint",
                                             "load_universal_checkpoint",
                                             "aio",
                                             "prescale_gradients",
                                             "gradient_predivide_factor",
                                             "disable_allgather",
                                             "zero_allow_untested_optimizer",
                                             "zero_force_ds_cpu_optimizer",
                                             "dataloader_drop_last",
                                             "use_node_local_storage",
                                             "seed",
                                             "elasticity",
                                             "use_data_before_expert_parallelism",
                                             "compression_training",
                                             "sparse_attention",
                                             "sparse_gradients",
                                             "progressive_layer_drop",
                                             "curriculum_learning",
                                             "data_efficiency",
                                             "quantize_training",
                                             "eigenvalue",
                                             "hybrid_engine",
                                             "nebula",
                                             "compile",
                                             "communication_data_type"};
  return keys;
}

// In zero_optimization: obeyed, or true of every run here: gradients are always contiguous, partitions always
// gathered whole, stage 3 always holds one layer, gathered when it is needed.
const std::set<std::string>& known_in_zero() {
  static const std::set<std::string> keys = {"stage",
                                             "reduce_bucket_size",
                                             "allgather_bucket_size",
                                             "overlap_comm",
                                             "reduce_scatter",
                                             "allgather_partitions",
                                             "contiguous_gradients",
                                             "round_robin_gradients",
                                             "sub_group_size",
                                             "prefetch_bucket_size",
                                             "stage3_prefetch_bucket_size",
                                             "param_persistence_threshold",
                                             "stage3_param_persistence_threshold",
                                             "model_persistence_threshold",
                                             "stage3_model_persistence_threshold",
                                             "max_live_parameters",
                                             "stage3_max_live_parameters",
                                             "max_reuse_distance",
                                             "stage3_max_reuse_distance",
                                             "elastic_checkpoint",
                                             "load_from_fp32_weights",
                                             "legacy_stage1",
                                             "ignore_unused_parameters",
                                             "gather_16bit_weights_on_model_save",
                                             "stage3_gather_16bit_weights_on_model_save",
                                             "stage3_gather_fp16_weights_on_model_save",
                                             "use_multi_rank_bucket_allreduce",
                                             "offload_optimizer",
                                             "offload_param",
                                             "cpu_offload",
                                             "cpu_offload_params",
                                             "cpu_offload_use_pin_memory",
                                             "zero_hpz_partition_size",
                                             "zero_quantized_weights",
                                             "zero_quantized_gradients",
                                             "zero_quantized_nontrainable_weights",
                                             "mics_shard_size",
                                             "mics_hierarchical_params_gather",
                                             "memory_efficient_linear"};
  return keys;
}

// Features of other engines: one line each when they are switched on.
const char* const kFeatures[] = {"compression_training",
                                 "progressive_layer_drop",
                                 "curriculum_learning",
                                 "data_efficiency",
                                 "quantize_training",
                                 "eigenvalue",
                                 "hybrid_engine",
                                 "sparse_gradients",
                                 "elasticity",
                                 "compile",
                                 "bf16.check_grad_overflow",
                                 "bf16.immediate_grad_update",
                                 "zero_optimization.zero_quantized_weights",
                                 "zero_optimization.zero_quantized_gradients",
                                 "activation_checkpointing.partition_activations",
                                 "activation_checkpointing.cpu_checkpointing"};

// The offload of parameters; update_settings.cc has the optimizer's.
void check_param_offload(const Json& config) {
  for (const char* key : {"zero_optimization.cpu_offload_param", "zero_optimization.cpu_offload_params"}) {
    if (!is_enabled(config, key)) continue;
    throw Error(fmt::format(R"({}: set zero_optimization.offload_param to {{"device": "cpu"}} instead)", key));
  }
  const std::string device = "zero_optimization.offload_param.device";
  const std::string where = read_string(config, device, "none");
  if (where == "none") return;
  if (where != "cpu") throw Error(fmt::format("{} is \"{}\": dsat-trial offloads to \"cpu\" only", device, where));
  const int64_t stage = read_integer(config, "zero_optimization.stage", 0, 0, 3);
  if (stage != 3)
    throw Error(fmt::format("{} is \"cpu\" at stage {}: only stage 3 offloads parameters", device, stage));
}

std::string nearest(const std::string& key, const std::set<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  return std::string(nearest_name(key, names, slip_tolerance(key)));
}

// `nearest`: of the keys that dsat-trial has here; empty where none is near.
std::string unknown_line(const std::string& key, const std::string& nearest) {
  const std::string meant = nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("{}: unknown to dsat-trial, without effect{}", key, meant);
}

// Below the top level; zero_optimization has a list of its own.
void warn_of_nested(const Json& written, std::vector<std::string>& warnings) {
  for (const config::UnknownKey& unknown : config::unknown_keys(written)) {
    if (unknown.key.find('.') == std::string::npos || unknown.key.rfind("zero_optimization.", 0) == 0) continue;
    warnings.push_back(unknown_line(unknown.key, unknown.suggestion));
  }
}

void refuse_above_one(const Json& config, const std::string& key, const std::string& what) {
  const int64_t value = read_integer(config, key, 1, -1, INT32_MAX);
  if (value > 1) throw Error(fmt::format("{} is {}: dsat-trial has no {}; set it to 1", key, value, what));
}

}  // namespace

void refuse_unsupported(const Json& config) {
  if (is_enabled(config, "amp")) throw Error("amp.enabled: dsat-trial has no Apex; use bf16.enabled instead");
  check_param_offload(config);
  if (const int64_t size = config::tensor_parallelism(config).size; size > 1) {
    throw Error(fmt::format("the tensor-parallel size is {}: dsat-trial has no tensor parallelism; set it to 1", size));
  }
  refuse_above_one(config, "autotp_size", "tensor parallelism");
  refuse_above_one(config, "tensor_parallel.tp.tp_size", "tensor parallelism");  // DeepSpeed ignores it without a word
  refuse_above_one(config, config::kSequenceParallelKey, "sequence parallelism");
  refuse_above_one(config, "zero_optimization.zero_hpz_partition_size", "hierarchical partitioning");
  refuse_above_one(config, "zero_optimization.mics_shard_size", "hierarchical partitioning");
  const bool bf16 = is_enabled(config, "bf16") || is_enabled(config, "bfloat16");
  const std::string own = is_enabled(config, "fp16") ? "fp16" : bf16 ? "bf16" : "fp32";
  const std::string dtype = read_string(config, "data_types.grad_accum_dtype", own);
  if (dtype != own) {
    throw Error(fmt::format(
        "data_types.grad_accum_dtype is \"{}\": gradients accumulate in the parameters' own type, {}; leave it out",
        dtype, own));
  }
}

std::vector<std::string> warn_of_ignored(const Json& config, const Json& written) {
  std::vector<std::string> warnings;
  if (config.contains("sparse_attention")) warnings.push_back("sparse_attention: dsat-trial computes it densely");
  for (const char* feature : kFeatures) {
    if (is_enabled(config, feature)) warnings.push_back(fmt::format("{}: dsat-trial does not have it", feature));
  }
  for (const auto& [key, value] : written.items()) {
    if (obeyed().count(key) > 0 || harmless().count(key) > 0) continue;
    std::set<std::string> known = obeyed();
    known.insert(harmless().begin(), harmless().end());
    warnings.push_back(unknown_line(key, nearest(key, known)));
  }
  warn_of_nested(written, warnings);
  const Json* zero = given(written, "zero_optimization");
  if (zero != nullptr && zero->is_object()) {
    for (const auto& [key, value] : zero->items()) {
      if (known_in_zero().count(key) > 0) continue;
      const std::string meant = nearest(key, known_in_zero());
      warnings.push_back(unknown_line("zero_optimization." + key, meant.empty() ? "" : "zero_optimization." + meant));
    }
  }
  return warnings;
}

}  // namespace dsat::trainer
