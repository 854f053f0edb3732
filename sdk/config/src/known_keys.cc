// The table of all keys that DeepSpeed reads, by section. It is parsed on first use into maps for the lookup.
#include "known_keys.h"

#include <map>
#include <sstream>

namespace dsat::config {
namespace {

struct Row {
  const char* section;  // dotted; "" is the top level
  KeyKind kind;
  const char* names;  // separated by blanks
};

// Older names that DeepSpeed still reads (bfloat16, cpu_offload, allgather_size) are known too.
constexpr Row kRows[] = {
    {"", KeyKind::kScalar,
     "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps managed_gradient_accumulation "
     "gradient_clipping prescale_gradients gradient_predivide_factor gradient_allreduce_op fp32_allreduce "
     "communication_data_type seq_parallel_communication_data_type seq_parallel_comm_data_type sparse_gradients "
     "steps_per_print log_level wall_clock_breakdown memory_breakdown dump_state dataloader_drop_last seed mp_size "
     "sequence_parallel_size data_parallel_size vocabulary_size disable_allgather allgather_size "
     "graph_harvesting zero_allow_untested_optimizer zero_force_ds_cpu_optimizer use_data_before_expert_parallelism "
     "use_node_local_storage load_universal_checkpoint checkpoint_tag_validation"},
    {"", KeyKind::kFree,
     "compression_training data_efficiency curriculum_learning quantize_training weight_quantization expert_parallel "
     "amp datastates_ckpt data_sampling mesh_param"},
    {"optimizer", KeyKind::kScalar, "type legacy_fusion"},
    {"optimizer", KeyKind::kFree, "params"},
    {"scheduler", KeyKind::kScalar, "type"},
    {"scheduler", KeyKind::kFree, "params"},
    {"fp16", KeyKind::kScalar,
     "enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis consecutive_hysteresis "
     "min_loss_scale fused_mode fp16_master_weights_and_grads"},
    {"bf16", KeyKind::kScalar,
     "enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads bf16_optimizer_states"},
    {"bfloat16", KeyKind::kScalar, "enabled immediate_grad_update check_grad_overflow"},
    {"torch_autocast", KeyKind::kScalar, "enabled dtype"},
    {"torch_autocast", KeyKind::kList, "lower_precision_safe_modules"},
    {"zero_optimization", KeyKind::kScalar,
     "stage contiguous_gradients reduce_scatter reduce_bucket_size use_multi_rank_bucket_allreduce "
     "allgather_partitions allgather_bucket_size overlap_comm load_from_fp32_weights elastic_checkpoint "
     "sub_group_size cpu_offload cpu_offload_param cpu_offload_use_pin_memory "
     "stage3_max_live_parameters stage3_max_reuse_distance stage3_prefetch_bucket_size "
     "stage3_param_persistence_threshold stage3_model_persistence_threshold "
     "stage3_gather_16bit_weights_on_model_save stage3_gather_fp16_weights_on_model_save "
     "stage3_partition_stream_chunk_size stage3_module_granularity_threshold stage3_use_all_reduce_for_fetch_params "
     "stage3_allgather_sequential "
     "prefetch_bucket_size param_persistence_threshold model_persistence_threshold max_live_parameters "
     "max_reuse_distance gather_16bit_weights_on_model_save module_granularity_threshold "
     "use_all_reduce_for_fetch_params allgather_sequential ignore_unused_parameters legacy_stage1 "
     "round_robin_gradients zero_hpz_partition_size zero_quantized_weights "
     "zero_quantized_nontrainable_weights zero_quantized_gradients mics_shard_size mics_hierarchical_params_gather "
     "memory_efficient_linear pipeline_loading_checkpoint override_module_apply log_trace_cache_warnings "
     "enable_sanity_checks save_muon_momentum_buffer_in_memory"},
    {"zero_optimization", KeyKind::kFree, "zeropp_loco_param"},
    {"zero_optimization.zenflow", KeyKind::kScalar,
     "topk_ratio select_strategy select_interval update_interval overlap_step offload auto_ratio full_warm_up_rounds "
     "pt_reserved_cores_perc steps_per_epoch"},
    {"zero_optimization.leaf_module", KeyKind::kList, "classes names name_suffixes"},
    {"zero_optimization.offload_param", KeyKind::kScalar,
     "device nvme_path pin_memory buffer_count buffer_size max_in_cpu"},
    {"zero_optimization.offload_optimizer", KeyKind::kScalar,
     "device nvme_path pin_memory buffer_count pipeline_read pipeline_write fast_init ratio super_offload "
     "cpuadam_cores_perc"},
    {"aio", KeyKind::kScalar,
     "block_size queue_depth thread_count intra_op_parallelism single_submit overlap_events use_gds"},
    {"activation_checkpointing", KeyKind::kScalar,
     "partition_activations cpu_checkpointing contiguous_memory_optimization number_checkpoints "
     "synchronize_checkpoint_boundary profile"},
    {"pipeline", KeyKind::kScalar,
     "stages partition seed_layers activation_checkpoint_interval pipe_partitioned grad_partitioned use_reentrant"},
    {"compile", KeyKind::kScalar,
     "enabled backend deepcompile free_activation free_activation_threshold offload_activation "
     "offload_activation_pin_memory offload_opt_states double_buffer symmetric_memory debug_log offload_parameters "
     "sync_before_reduce sync_after_reduce sync_before_allgather sync_after_allgather keep_int_input_tensors "
     "keep_all_input_tensors"},
    {"compile", KeyKind::kList, "passes"},
    {"compile", KeyKind::kFree, "kwargs"},
    {"tensor_parallel", KeyKind::kScalar,
     "enabled autotp_size tp_size tp_grain_size tp_overlap_comm preset_model vocab_parallel_lm_head dtype "
     "keep_module_on_host replace_with_kernel_inject kernel_inject"},
    {"tensor_parallel", KeyKind::kFree, "partition_config injection_policy_tuple"},
    {"tensor_parallel.tp", KeyKind::kScalar, "tp_size tp_grain_size"},
    {"flops_profiler", KeyKind::kScalar,
     "enabled recompute_fwd_factor profile_step module_depth top_modules detailed output_file"},
    {"autotuning", KeyKind::kScalar,
     "enabled fast results_dir exps_dir overwrite start_profile_step end_profile_step start_step end_step metric "
     "metric_path model_info_path tuner_type tuner_early_stopping tuner_num_trials max_train_batch_size "
     "min_train_batch_size max_train_micro_batch_size_per_gpu min_train_micro_batch_size_per_gpu "
     "num_tuning_micro_batch_sizes mp_size num_gpus num_nodes"},
    {"autotuning", KeyKind::kFree, "arg_mappings model_info"},
    {"tensorboard", KeyKind::kScalar, "enabled output_path job_name"},
    {"csv_monitor", KeyKind::kScalar, "enabled output_path job_name"},
    {"wandb", KeyKind::kScalar, "enabled group team project"},
    {"trackio", KeyKind::kScalar, "enabled project"},
    {"comet", KeyKind::kScalar,
     "enabled samples_log_interval project workspace api_key experiment_name experiment_key online mode"},
    {"comms_logger", KeyKind::kScalar, "enabled verbose prof_all debug"},
    {"comms_logger", KeyKind::kList, "prof_ops"},
    {"data_types", KeyKind::kScalar, "grad_accum_dtype param_dtype buffer_dtype"},
    {"checkpoint", KeyKind::kScalar, "tag_validation checkpoint_serialization load_universal use_node_local_storage"},
    {"checkpoint", KeyKind::kFree, "parallel_write writer"},
    {"elasticity", KeyKind::kScalar,
     "enabled max_train_batch_size min_gpus max_gpus min_time prefer_larger_batch ignore_non_elastic_batch_info "
     "version model_parallel_size num_gpus_per_node"},
    {"elasticity", KeyKind::kList, "micro_batch_sizes"},
    {"sparse_attention", KeyKind::kScalar,
     "mode block different_layout_per_head num_local_blocks num_global_blocks attention horizontal_global_attention "
     "num_different_global_patterns num_random_blocks num_sliding_window_blocks"},
    {"sparse_attention", KeyKind::kList, "local_window_blocks global_block_indices global_block_end_indices"},
    {"hybrid_engine", KeyKind::kScalar,
     "enabled max_out_tokens inference_tp_size release_inference_cache pin_parameters tp_gather_partition_size "
     "enable_cuda_graph"},
    {"eigenvalue", KeyKind::kScalar,
     "enabled verbose max_iter tol stability gas_boundary_resolution layer_name layer_num"},
    {"progressive_layer_drop", KeyKind::kScalar, "enabled theta gamma"},
    {"nebula", KeyKind::kScalar,
     "enabled persistent_storage_path persistent_time_interval num_of_version_in_retention enable_nebula_load "
     "load_path"},
    {"timers.throughput", KeyKind::kScalar, "enabled synchronized"},
};

struct Table {
  std::map<std::string, KeyKind, std::less<>> kinds;
  std::map<std::string, std::vector<std::string>, std::less<>> members;

  Table() {
    for (const Row& row : kRows) {
      std::istringstream names(row.names);
      for (std::string name; names >> name;) add(row.section, name, row.kind);
    }
  }

  void add(const std::string& section, const std::string& name, KeyKind kind) {
    if (!section.empty()) add_section(section);
    if (!kinds.emplace(section.empty() ? name : section + "." + name, kind).second) return;
    members[section].push_back(name);
  }

  void add_section(const std::string& section) {
    const size_t dot = section.rfind('.');
    if (dot == std::string::npos) {
      add("", section, KeyKind::kSection);
    } else {
      add(section.substr(0, dot), section.substr(dot + 1), KeyKind::kSection);
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

KeyKind key_kind(std::string_view key) {
  const auto& kinds = table().kinds;
  for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.', dot + 1)) {
    const auto parent = kinds.find(key.substr(0, dot));
    if (parent != kinds.end() && parent->second == KeyKind::kFree) return KeyKind::kFree;
  }
  const auto at = kinds.find(key);
  return at == kinds.end() ? KeyKind::kUnknown : at->second;
}

const std::vector<std::string>& section_members(std::string_view section) {
  static const std::vector<std::string> kNone;
  const auto at = table().members.find(section);
  return at == table().members.end() ? kNone : at->second;
}

}  // namespace dsat::config
