// Reads a DeepSpeed configuration into plain settings: refusals first, then rules, sizes and sections.
// The configuration comes from a file or, as DeepSpeed's launcher passes it, from URL-safe base64.
#include "settings/settings.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/config_reader.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "layout/pipeline_grid.h"
#include "settings/config_keys.h"
#include "settings/schedule_settings.h"
#include "settings/update_settings.h"

namespace dsat::trainer {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 50;

TuningSettings read_tuning(const Json& config) {
  TuningSettings t;
  t.enabled = is_enabled(config, "autotuning");
  if (!t.enabled) return t;
  t.model_info = read_bool(config, "autotuning.model_info.profile", false);
  t.model_info_path = read_string(config, "autotuning.model_info_path", t.model_info_path);
  t.metric_path = read_string(config, "autotuning.metric_path", t.metric_path);
  t.start_profile_step = read_integer(config, "autotuning.start_profile_step", t.start_profile_step, 0, INT32_MAX);
  t.end_profile_step = read_integer(config, "autotuning.end_profile_step", t.end_profile_step, 0, INT32_MAX);
  if (t.end_profile_step < t.start_profile_step) {
    throw Error(fmt::format("autotuning.end_profile_step {} is before start_profile_step {}", t.end_profile_step,
                            t.start_profile_step));
  }
  return t;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-' || c == '+') return 62;
  if (c == '_' || c == '/') return 63;
  return -1;
}

// nullopt: not base64.
std::optional<std::string> decode_base64(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < text.size() && text[i] != '='; ++i) {
    const int digit = base64_digit(text[i]);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  return bytes;
}

// DeepSpeed writes "all of them" as the largest integer: more than any model has means no bound.
int64_t read_count(const Json& config, const std::string& key, int64_t otherwise, int64_t low) {
  constexpr double kAnything = 1e300;
  const double number = read_number(config, key, static_cast<double>(otherwise), static_cast<double>(low), kAnything);
  if (number > static_cast<double>(kMaxElements)) return kMaxElements;
  return read_integer(config, key, otherwise, low, kMaxElements);
}

int64_t read_elements(const Json& config, const std::string& key, int64_t otherwise) {
  return read_count(config, "zero_optimization.stage3_" + key, otherwise, 0);
}

// 0: as many as it likes. false and 0 are what DeepSpeed takes for none given.
int64_t read_number_of_checkpoints(const Json& config) {
  const std::string key = "activation_checkpointing.number_checkpoints";
  const Json* value = given(config, key);
  return value == nullptr || *value == false ? 0 : read_integer(config, key, 0, 0, INT32_MAX);
}

void read_communication(const Json& config, Settings& s) {
  // DeepSpeed's default is for models a thousand times as large: a small model's bucket would be the model again.
  const int64_t otherwise = s.stage >= 2 ? 0 : s.reduce_bucket;
  s.reduce_bucket = read_count(config, "zero_optimization.reduce_bucket_size", otherwise, 1);
  s.allgather_bucket = read_count(config, "zero_optimization.allgather_bucket_size", s.allgather_bucket, 1);
  s.overlap_comm = read_bool(config, "zero_optimization.overlap_comm", s.stage == 3);  // as DeepSpeed
  s.reduce_scatter = read_bool(config, "zero_optimization.reduce_scatter", true);
  s.allgather_partitions = read_bool(config, "zero_optimization.allgather_partitions", true);
  s.contiguous_gradients = read_bool(config, "zero_optimization.contiguous_gradients", true);
}

void read_stage3(const Json& config, Settings& s) {
  if (s.stage != 3) return;
  s.prefetch_bucket = read_elements(config, "prefetch_bucket_size", 0);
  s.persistence_threshold = read_elements(config, "param_persistence_threshold", 0);
  s.model_persistence_threshold = read_elements(config, "model_persistence_threshold", kMaxElements);
  s.max_live_parameters = read_elements(config, "max_live_parameters", 0);
  s.max_reuse_distance = read_elements(config, "max_reuse_distance", -1);
  s.offload_param = read_string(config, "zero_optimization.offload_param.device", "none") == "cpu";
}

}  // namespace

std::string Settings::precision() const {
  if (fp16) return "fp16";
  if (loss_scale.enabled) return "bf16 in place of fp16";
  return bf16 ? "bf16" : "fp32";
}

Fp16 fp16_on(bool is_cpu, bool as_bf16) {
  if (as_bf16) return Fp16::in_bf16;
  return is_cpu ? Fp16::refused : Fp16::computed;
}

SettingsResult read_settings(const Json& written, int64_t world_size, Fp16 fp16) {
  if (!written.is_object()) throw Error("the configuration is no JSON object; expected {...}");
  const Json config = config::canonical(written);
  refuse_unsupported(config);
  if (fp16 == Fp16::refused) refuse_fp16(config);
  // DeepSpeed's own rules come after the refusals: a key that dsat-trial cannot obey is the shorter answer.
  config::RuleOptions rules;
  rules.engine_is_deepspeed = false;
  if (const auto broken = config::broken_rule(config, rules)) throw Error(*broken);
  SettingsResult result;
  Settings& s = result.settings;
  const config::GivenBatchSizes sizes = config::read_batch_sizes(config);
  s.pipeline = read_pipeline(config);
  const int replicas = PipelineGrid(static_cast<int>(world_size), s.pipeline.stages).data_parallel_size();
  config::check_batch_sizes(sizes, replicas);
  s.batch = config::complete_batch_sizes(sizes, replicas);
  s.stage = config::zero_stage(config);
  read_communication(config, s);
  read_stage3(config, s);
  s.loss_scale = read_loss_scale(config);
  s.fp16 = s.loss_scale.enabled && fp16 == Fp16::computed;
  s.bf16 = (s.loss_scale.enabled && !s.fp16) || is_enabled(config, "bf16") || is_enabled(config, "bfloat16");
  s.offload_optimizer = offloads_optimizer(config);
  s.gradient_clipping = read_number(config, "gradient_clipping", 0, 0, 1e9);
  s.number_checkpoints = read_number_of_checkpoints(config);
  s.optimizer = read_optimizer(config);
  s.schedule = read_schedule(config, s.optimizer.lr, s.optimizer.kind != OptimizerSettings::Kind::sgd);
  s.tuning = read_tuning(config);
  result.warnings = warn_of_ignored(config, written);
  warn_of_update_settings(config, result.warnings);
  return result;
}

Json load_configuration(const std::string& argument) {
  std::error_code ignored;
  if (!std::filesystem::exists(argument, ignored)) {
    const std::optional<std::string> decoded = decode_base64(argument);
    if (decoded && !decoded->empty() && decoded->front() == '{') return config::parse(*decoded, "--deepspeed_config");
  }
  return config::load_input(argument);
}

}  // namespace dsat::trainer
