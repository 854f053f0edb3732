// What a DeepSpeed configuration asks of this trainer.
//
// Every key is obeyed, known to change nothing here, named in one warning, or refused: never passed over in silence.
// Units: in the fields. Errors: dsat::Error, one line that names the key. Threading: values and pure functions.
#ifndef DSAT_TRAINER_SETTINGS_SETTINGS_H_
#define DSAT_TRAINER_SETTINGS_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dsat/config/batch.h"
#include "dsat/error.h"
#include "optimizer/learning_rate.h"
#include "optimizer/loss_scaler.h"
#include "optimizer/optimizer.h"
#include "settings/pipeline_settings.h"

namespace dsat::trainer {

// The `autotuning` section: what a tuning trial is to measure and where to write it.
struct TuningSettings {
  bool enabled = false;
  bool model_info = false;  // stop after one forward and describe the model
  std::string model_info_path = "autotuning_model_info.json";
  std::string metric_path = "autotuning_metric.json";
  int64_t start_profile_step = 3;  // optimizer steps, counted from 0, both included
  int64_t end_profile_step = 5;
};

struct Settings {
  int stage = 0;
  config::BatchSizes batch;
  int64_t reduce_bucket = 500000000;     // elements; 0, absent at stages 2 and 3: those of the largest layer
  int64_t allgather_bucket = 500000000;  // elements
  bool overlap_comm = false;             // absent: true at stage 3, as in DeepSpeed
  bool reduce_scatter = true;            // false: all-reduce, every rank sees the whole sum
  bool allgather_partitions = true;      // false: updated parameters are sent round one rank after the other
  bool contiguous_gradients = true;      // false: no memory for gradient buckets is held between them
  // Stage 3, elements. Absent: nothing is gathered ahead, persistent, or kept for its next use.
  int64_t prefetch_bucket = 0;
  int64_t persistence_threshold = 0;
  int64_t model_persistence_threshold = INT64_MAX;
  int64_t max_live_parameters = 0;  // 0: absent
  int64_t max_reuse_distance = -1;  // -1: absent
  bool offload_param = false;       // the shard of the parameters in host memory
  bool bf16 = false, fp16 = false;  // what is computed in, one of them at most; see precision()
  LossScaleSettings loss_scale;     // enabled: the configuration is in fp16
  bool offload_optimizer = false;   // master copy, optimizer states and gradient shard in host memory
  double gradient_clipping = 0;     // 0: none
  // activation_checkpointing.number_checkpoints: segments to recompute where the script switches recomputation on.
  // 0: the square root of the layers.
  int64_t number_checkpoints = 0;
  PipelineSettings pipeline;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  TuningSettings tuning;

  bool is_16_bit() const { return bf16 || fp16; }
  // "fp32", "bf16", "fp16" or "bf16 in place of fp16".
  std::string precision() const;
};

// What becomes of a configuration in fp16, which a CPU cannot compute.
enum class Fp16 { refused, in_bf16, computed };
Fp16 fp16_on(bool is_cpu, bool as_bf16);

struct SettingsResult {
  Settings settings;
  std::vector<std::string> warnings;  // one line each
};

// `world_size`: ranks; with a pipeline the data-parallel size is a fraction of it.
SettingsResult read_settings(const Json& config, int64_t world_size, Fp16 fp16 = Fp16::refused);

// Reads the configuration that --deepspeed_config names: a file, else URL-safe base64 of the JSON.
Json load_configuration(const std::string& argument);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_SETTINGS_H_
